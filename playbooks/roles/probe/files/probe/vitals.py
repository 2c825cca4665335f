"""What a host and its parts say about themselves, from /proc and /sys alone: memory, processors, network ports, drives, accelerators.

Everything is a whole number in the unit of its name. A part that is not there has no row: 0 would be a claim.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional

SECTOR = 512  # of /proc/diskstats and /sys/block/*/stat, whatever the drive's own is
DRIVES = ("nvme", "sd", "vd", "xvd", "md", "dm-", "loop")
NVIDIA = "index,memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw,ecc.errors.uncorrected.volatile.total"
NVIDIA_TIMEOUT_S = 4.0
_TEMPERATURE = "hwmon*/temp1_input"


def host_row() -> Dict[str, Any]:
    """Return {mem_total_bytes, mem_available_bytes, load1, cpu_s (busy seconds of all processors since boot)}.

    The total stands beside what is available, so that a figure in another unit cannot be mistaken for free memory.
    """
    row: Dict[str, Any] = {"mem_total_bytes": None, "mem_available_bytes": None, "load1": None, "cpu_s": None}
    try:
        with open("/proc/meminfo", encoding="ascii") as f:
            found = dict(line.split(":", 1) for line in f if ":" in line)
        row["mem_total_bytes"] = int(found["MemTotal"].split()[0]) * 1024
        row["mem_available_bytes"] = int(found["MemAvailable"].split()[0]) * 1024
        with open("/proc/loadavg", encoding="ascii") as f:
            row["load1"] = float(f.read().split()[0])
        with open("/proc/stat", encoding="ascii") as f:
            user, nice, system, _idle, _iowait, irq, softirq = (int(v) for v in f.readline().split()[1:8])
        row["cpu_s"] = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, KeyError, IndexError):
        pass
    return row


def ports(sysfs: str = "/sys") -> Dict[str, Dict[str, int]]:
    """Return {port: {rx_bytes, tx_bytes, rx_errors, tx_errors, rx_dropped}} of network ports with hardware, and {device/port: ...} of RDMA.

    RDMA counts words of four bytes (InfiniBand architecture, PortCounters); they are given in bytes. RoCE traffic is in no netdev's counters.
    """
    out: Dict[str, Dict[str, int]] = {}
    for path in sorted(glob.glob(sysfs + "/class/net/*/device")):
        base = os.path.dirname(path)
        row = {key: number(os.path.join(base, "statistics", key)) for key in ("rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped")}
        _keep(out, os.path.basename(base), row)
    for base in sorted(glob.glob(sysfs + "/class/infiniband/*/ports/*/counters")):
        words = {"rx_bytes": number(base + "/port_rcv_data"), "tx_bytes": number(base + "/port_xmit_data")}
        row = {key: None if value is None else value * 4 for key, value in words.items()}
        row.update(
            rx_errors=number(base + "/port_rcv_errors"), tx_errors=number(base + "/port_xmit_discards"), link_downed=number(base + "/link_downed")
        )
        parts = base.split("/")
        _keep(out, "%s/%s" % (parts[-4], parts[-2]), row)
    return out


def drives(sysfs: str = "/sys", only: Optional[str] = None) -> Dict[str, Dict[str, int]]:
    """Return {device: {read_bytes, write_bytes, busy_ms, temperature_mc?}} of whole drives in use. `only` names one device."""
    out: Dict[str, Dict[str, int]] = {}
    for base in sorted(glob.glob(sysfs + "/block/*")):
        name = os.path.basename(base)
        if only not in (None, name) or not name.startswith(DRIVES) or not number(base + "/size"):
            continue
        field = _text(base + "/stat").split()
        if len(field) < 11 or not all(word.isdigit() for word in field[:11]):
            continue
        row = {"read_bytes": int(field[2]) * SECTOR, "write_bytes": int(field[6]) * SECTOR, "busy_ms": int(field[9])}
        _keep(out, name, dict(row, temperature_mc=_first(base + "/device/" + _TEMPERATURE, base + "/device/device/" + _TEMPERATURE)))
    return out


def accelerators(sysfs: str = "/sys", run: Any = None) -> Dict[str, Dict[str, int]]:
    """Return {card: {memory_used_bytes, memory_total_bytes, busy_percent, temperature_mc, power_mw, ecc_uncorrected, ecc_deferred}}.

    AMD cards tell it in sysfs; NVIDIA's are asked through nvidia-smi, where it is on PATH.
    """
    out: Dict[str, Dict[str, int]] = {}
    for base in sorted(glob.glob(sysfs + "/class/drm/card*/device")):
        if not os.path.exists(base + "/mem_info_vram_total"):
            continue
        power = _first(base + "/hwmon/hwmon*/power1_average", base + "/hwmon/hwmon*/power1_input")
        row = {"memory_used_bytes": number(base + "/mem_info_vram_used"), "memory_total_bytes": number(base + "/mem_info_vram_total")}
        row.update(busy_percent=number(base + "/gpu_busy_percent"), temperature_mc=_first(base + "/hwmon/" + _TEMPERATURE))
        row.update(power_mw=None if power is None else power // 1000, ecc_uncorrected=_ras(base + "/ras/*_err_count", "ue"))
        row["ecc_deferred"] = _ras(base + "/ras/*_err_count", "de")  # of drivers that tell it (MI300 and later, Linux 6.8)
        _keep(out, os.path.basename(os.path.dirname(base)), row)
    return out or _nvidia(run or _ask_nvidia)


def page_cache() -> Dict[str, int]:
    """Return {cached_bytes, paged_in_bytes}: what the page cache holds now, and what all devices filled into it since boot."""
    row: Dict[str, int] = {}
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("Cached:"):
            row["cached_bytes"] = int(line.split()[1]) * 1024
    for line in _text("/proc/vmstat").splitlines():
        if line.startswith("pgpgin "):
            row["paged_in_bytes"] = int(line.split()[1]) * 1024
    return row


def _nvidia(run: Any) -> Dict[str, Dict[str, int]]:
    out: Dict[str, Dict[str, int]] = {}
    for line in (run() or "").splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) != len(NVIDIA.split(",")):
            continue
        used, total, busy, heat, power, ecc = (_scaled(w, s) for w, s in zip(words[1:], (1 << 20, 1 << 20, 1, 1000, 1000, 1)))
        row = {"memory_used_bytes": used, "memory_total_bytes": total, "busy_percent": busy, "temperature_mc": heat, "power_mw": power}
        _keep(out, "gpu" + words[0], dict(row, ecc_uncorrected=ecc))
    return out


def _ask_nvidia() -> str:
    program = shutil.which("nvidia-smi")
    if not program:
        return ""
    argv = [program, "--query-gpu=" + NVIDIA, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=NVIDIA_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("ascii", "replace") if done.returncode == 0 else ""


def _scaled(word: str, scale: int) -> Optional[int]:
    try:
        return round(float(word) * scale)
    except (ValueError, OverflowError):  # "[N/A]": not told
        return None


def _ras(pattern: str, wanted: str) -> Optional[int]:
    """Return the sum of uncorrected (`ue`) or deferred (`de`) errors over the blocks of an AMD card; None where none of them tells."""
    found: List[int] = []
    for path in glob.glob(pattern):
        for line in _text(path).splitlines():
            key, _, value = line.partition(":")
            if key.strip() == wanted and value.strip().isdigit():
                found.append(int(value))
    return sum(found) if found else None


def number(path: str) -> Optional[int]:
    """Return the whole number that a file of the kernel holds, or None."""
    try:
        return int(_text(path).split()[0])
    except (ValueError, IndexError):
        return None


def _first(*patterns: str) -> Optional[int]:
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            found = number(path)
            if found is not None:
                return found
    return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def _keep(out: Dict[str, Dict[str, int]], name: str, row: Dict[str, Optional[int]]) -> None:
    """Keep what a part tells; one that tells nothing has no row."""
    told = {key: value for key, value in row.items() if value is not None}
    if told:
        out[name] = told
