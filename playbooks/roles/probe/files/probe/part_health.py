"""What drives and accelerators say of their own health, once a minute of a soak: heat against their own thresholds, wear, errors, throttling.

A part is named by what stays with it (a drive by its serial number, an accelerator by its index), so that one that is swapped is another one.
Every figure is a whole number in the unit of its name. What a part does not tell is absent: 0 would be a claim.
"""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

Run = Callable[[List[str]], str]
LOG = {  # of `nvme smart-log -o json`; temperatures are in kelvin there
    "temperature_k": "temperature",
    "critical_warning": "critical_warning",
    "spare_percent": "avail_spare",
    "spare_least_percent": "spare_thresh",
    "used_percent": "percent_used",
    "media_errors": "media_errors",
    "warning_minutes": "warning_temp_time",
    "critical_minutes": "critical_comp_time",
    "throttle1_begun": "thm_temp1_trans_count",
    "throttle2_begun": "thm_temp2_trans_count",
    "throttle1_s": "thm_temp1_total_time",
    "throttle2_s": "thm_temp2_total_time",
}
THRESHOLDS = {"warning_k": "wctemp", "critical_k": "cctemp"}  # of `nvme id-ctrl`; 0 is "not told" (NVMe base specification, Identify Controller)
# Residencies since the driver was loaded. That of the power limit (ppt) is left out: at full load a part is held there, as it should be.
RESIDENCIES = {name: name + "_accumulated" for name in ("prochot", "socket_thermal", "vr_thermal", "hbm_thermal")}
_SENSORS = {"edge": "edge", "hotspot": "hotspot", "mem": "vram"}  # as `amd-smi metric` and `amd-smi static` name them
_AMD = (["amd-smi", "metric", "--temperature", "--power", "--throttle", "--json"], ["amd-smi", "metric", "--json"])
_NVIDIA_REASONS = ("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
_NVIDIA = "index,temperature.gpu," + ",".join("clocks_throttle_reasons." + reason for reason in _NVIDIA_REASONS)
_DEGREES = re.compile(r"(\d{1,4}) ?\u00b0?C")


class Drive:
    """One controller of a drive, and what its health log says now."""

    def __init__(self, base: str, run: Run) -> None:
        self.device = os.path.basename(base)
        self.subsystem = first_line(base + "/subsysnqn") or self.device
        self.serial = first_line(base + "/serial") or self.subsystem
        self.told = {"device": self.device, "model": first_line(base + "/model"), "firmware": first_line(base + "/firmware_rev")}
        self.state = first_line(base + "/state")  # of this path: live, connecting, resetting, deleting, dead
        self.log = json_of(run(["nvme", "smart-log", "/dev/" + self.device, "-o", "json"]))


def drives(run: Run, sysfs: str = "/sys") -> List[Drive]:
    """Return the controllers of the host, local or over a fabric, in order, with their health logs."""
    return [Drive(base, run) for base in sorted(glob.glob(sysfs + "/class/nvme/nvme*"))]


class PartHealth:
    """The health of one host's parts. What stays the same (thresholds, how its tool is asked) is asked once."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._thresholds: Dict[Tuple[str, str], Dict[str, int]] = {}
        self._slowdown: Optional[Dict[str, Dict[str, int]]] = None

    def reading(self, found: List[Drive]) -> Dict[str, Dict[str, Dict[str, Any]]]:
        """Return {drives: {serial: row}, gpus: {index: row}, paths: {serial: {controller: state}}}; a kind that nobody tells is absent."""
        paths: Dict[str, Dict[str, Any]] = {}
        for drive in found:
            if drive.state:
                paths.setdefault(drive.serial, {})[drive.device] = drive.state
        rows = {"drives": self._drives(found), "gpus": self._gpus(), "paths": paths}
        return {kind: parts for kind, parts in rows.items() if parts}

    def _drives(self, found: List[Drive]) -> Dict[str, Dict[str, Any]]:
        out: Dict[str, Dict[str, Any]] = {}
        for drive in found:
            figures = {name: whole(drive.log.get(key)) for name, key in LOG.items()}
            told = {name: value for name, value in figures.items() if value is not None}
            if told and drive.serial not in out:  # several paths lead to one log
                out[drive.serial] = dict(drive.told, **self._own(drive), **told)
        return out

    def _own(self, drive: Drive) -> Dict[str, int]:
        key = (drive.device, drive.serial)
        if key not in self._thresholds:
            identity = json_of(self._run(["nvme", "id-ctrl", "/dev/" + drive.device, "-o", "json"]))
            self._thresholds[key] = {name: value for name, word in THRESHOLDS.items() for value in [whole(identity.get(word))] if value}
        return self._thresholds[key]

    def _gpus(self) -> Dict[str, Dict[str, Any]]:
        amd = next((rows for rows in (_listed(self._run(argv)) for argv in _AMD) if rows), {})
        if not amd:
            return _nvidia(self._run(["nvidia-smi", "--query-gpu=" + _NVIDIA, "--format=csv,noheader,nounits"]))
        if self._slowdown is None:
            limits = {index: gpu.get("limit") or {} for index, gpu in _listed(self._run(["amd-smi", "static", "--limit", "--json"])).items()}
            self._slowdown = {index: _celsius(row, {s: "slowdown_%s_temperature" % w for s, w in _SENSORS.items()}) for index, row in limits.items()}
        out = {index: _amd_row(gpu, self._slowdown.get(index) or {}) for index, gpu in amd.items()}
        return {index: row for index, row in out.items() if row}


def _amd_row(gpu: Dict[str, Any], slowdown: Dict[str, int]) -> Dict[str, Any]:
    residencies = gpu.get("throttle")
    accumulated = {name: whole(residencies.get(key)) for name, key in RESIDENCIES.items()} if isinstance(residencies, dict) else {}
    row: Dict[str, Any] = {
        "temperature_c": _celsius(gpu.get("temperature"), {s: s for s in _SENSORS}),
        "slowdown_c": slowdown,
        "throttle": {name: value for name, value in accumulated.items() if value is not None},
    }
    status = (gpu.get("power") or {}).get("throttle_status")
    if status in ("THROTTLED", "UNTHROTTLED"):
        row["throttled"] = status == "THROTTLED"
    return {key: value for key, value in row.items() if value not in ({}, None)}


def _nvidia(text: str) -> Dict[str, Dict[str, Any]]:
    out: Dict[str, Dict[str, Any]] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) != 2 + len(_NVIDIA_REASONS) or not words[0].isdigit():
            continue
        row: Dict[str, Any] = {"temperature_c": {"gpu": int(words[1])}} if words[1].isdigit() else {}
        if set(words[2:]) <= {"Active", "Not Active"}:
            row["throttled"] = "Active" in words[2:]
        if row:
            out[words[0]] = row
    return out


def _listed(text: str) -> Dict[str, Dict[str, Any]]:
    """Return the GPUs of `amd-smi --json` by index, of either root shape (a list, or `gpu_data` from version 26 on)."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    rows = found.get("gpu_data") if isinstance(found, dict) else found
    listed = [row for row in rows if isinstance(row, dict) and whole(row.get("gpu")) is not None] if isinstance(rows, list) else []
    return {str(whole(row["gpu"])): row for row in listed}


def _celsius(holder: Any, names: Dict[str, str]) -> Dict[str, int]:
    """Return {sensor: degrees Celsius}. A figure whose unit is not written beside it is none."""
    out: Dict[str, int] = {}
    for sensor, key in names.items():
        raw = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(raw, dict) and raw.get("unit") == "C":
            value = whole(raw.get("value"))
        else:
            told = _DEGREES.fullmatch(raw.strip()) if isinstance(raw, str) else None
            value = int(told.group(1)) if told else None
        if value is not None:
            out[sensor] = value
    return out


def json_of(text: str) -> Dict[str, Any]:
    """Return the object that a tool printed; text before or behind it makes it doubtful, and nothing is taken from it."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def whole(value: Any) -> Optional[int]:
    """Return a whole number; nvme-cli writes 128-bit figures as text in some releases, and a warning as {value: ...} with -v."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and value.strip().isdigit() else None


def first_line(path: str) -> str:
    """Return the first line of a file of the kernel, empty where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.readline().strip()
    except OSError:
        return ""
