"""`amd-smi static|metric|firmware --json`: a list of GPUs, or the `gpu_data` wrapper of newer versions.

Observations, labelled `gpu` (index).
static: gpu.model, gpu.device_id, gpu.serial, gpu.address, gpu.vbios (text), gpu.memory (B), gpu.pcie_width_rated
(lanes), gpu.pcie_speed_rated (GT/s), gpu.slowdown_temperature (K; label `sensor`), where the card declares one.
metric: gpu.ecc_correctable, gpu.ecc_uncorrectable, gpu.ecc_deferred, gpu.pcie_replays, gpu.pcie_naks (1), gpu.pcie_width (lanes),
gpu.pcie_speed (GT/s), gpu.temperature (K; label `sensor`), gpu.power (W), gpu.throttle (text), gpu.throttle_cause (text: ACTIVE or NOT ACTIVE;
label `cause`), of releases that tell causes.
firmware: gpu.firmware (text; label `block`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, available, exact, load_json, part, rows
from gates.units import convert

_BYTES = {"B": "B", "KB": "KiB", "MB": "MiB", "GB": "GiB"}  # amd-smi counts in powers of 1024
_ECC = {"correctable": "gpu.ecc_correctable", "uncorrectable": "gpu.ecc_uncorrectable", "deferred": "gpu.ecc_deferred"}

_LIMITS = {"edge": "slowdown_edge_temperature", "hotspot": "slowdown_hotspot_temperature", "mem": "slowdown_vram_temperature"}
_CAUSES = ("prochot", "socket_thermal", "vr_thermal", "hbm_thermal")  # heat; the power limit is none: at full load a part is held there


def read_amd_smi_static(data: bytes) -> Reading:
    """Read the GPUs of one host. The text `N/A` is no value."""
    found = Collector()
    for gpu, index in gpus(data, found):
        _identity(gpu, index, found)
    return found.reading()


def read_amd_smi_metric(data: bytes) -> Reading:
    """Read ECC counts, PCIe link, temperatures, power and throttling of each GPU. A count that is missing or `N/A` is a problem."""
    found = Collector()
    for gpu, index in gpus(data, found):
        for kind, quantity in _ECC.items():
            found.number(part(gpu, "ecc"), f"total_{kind}_count", quantity, "1", gpu=index)
        _link(part(gpu, "pcie"), index, found)
        for sensor in ("edge", "hotspot", "mem"):
            raw = part(gpu, "temperature", sensor)
            if raw is not None and not _not_told(raw):
                _measured(raw, {"C": "degC"}, "K", "gpu.temperature", found, f"temperature.{sensor}", gpu=index, sensor=sensor)
        power = part(gpu, "power", "socket_power")
        if power is not None and not _not_told(power):
            _measured(power, {"W": "W"}, "W", "gpu.power", found, "power.socket_power", gpu=index)
        throttle = part(gpu, "power", "throttle_status")
        if isinstance(throttle, str) and available(throttle):
            found.see("gpu.throttle", throttle.strip(), "text", gpu=index)
        for cause in _CAUSES:
            status = part(gpu, "throttle", f"{cause}_violation_status")
            if isinstance(status, str) and available(status):
                found.see("gpu.throttle_cause", status.strip().upper(), "text", gpu=index, cause=cause)
    return found.reading()


def read_amd_smi_firmware(data: bytes) -> Reading:
    """Read the version of each firmware block of each GPU."""
    found = Collector()
    for gpu, index in gpus(data, found):
        blocks = rows(gpu, "fw_list")
        if not blocks:
            found.absent("fw_list", gpu.get("fw_list"), gpu=index)
        for block in blocks:
            name = block.get("fw_id") or block.get("fw_name")
            if not isinstance(name, str) or not available(name):
                found.absent("fw_id", name, gpu=index)
            else:
                found.text(block, "fw_version", "gpu.firmware", gpu=index, block=name.strip())
    return found.reading()


def gpus(data: bytes, found: Collector) -> list[tuple[dict[str, Any], str]]:
    """Return (GPU, index) of either root shape; an index that stands twice is a problem."""
    document = load_json(data, found)
    if document is None:
        return []
    listed = rows(document) if isinstance(document, list) else rows(document, "gpu_data")
    if not listed:
        found.trouble("empty_inventory", "amd-smi names no GPU.", "amd-smi 未列出任何 GPU。")
    out: dict[str, dict[str, Any]] = {}
    for gpu in listed:
        index = exact(gpu.get("gpu"))
        if index is None:
            found.absent("gpu", gpu.get("gpu"))
        elif str(index) in out:
            found.trouble("duplicate", "GPU {gpu} stands twice.", "GPU {gpu} 重复出现。", gpu=index)
        else:
            out[str(index)] = gpu
    return [(gpu, index) for index, gpu in out.items()]


def _identity(gpu: dict[str, Any], index: str, found: Collector) -> None:
    found.text(part(gpu, "asic"), "market_name", "gpu.model", gpu=index)
    found.text(part(gpu, "asic"), "asic_serial", "gpu.serial", gpu=index)
    found.text(part(gpu, "bus"), "bdf", "gpu.address", gpu=index)
    for holder, key, quantity in (
        ("asic", "device_id", "gpu.device_id"),
        ("vbios", "version", "gpu.vbios"),
        ("board", "product_name", "gpu.product"),
    ):
        value = part(gpu, holder, key)
        if isinstance(value, str) and available(value):
            found.see(quantity, value.strip(), "text", gpu=index)
    width, speed = part(gpu, "bus", "max_pcie_width"), part(gpu, "bus", "max_pcie_speed")
    if width is not None and not _not_told(width):
        found.number(part(gpu, "bus"), "max_pcie_width", "gpu.pcie_width_rated", "lanes", gpu=index)
    if speed is not None and not _not_told(speed):
        _measured(speed, {"GT/s": "GT/s"}, "GT/s", "gpu.pcie_speed_rated", found, "bus.max_pcie_speed", gpu=index)
    for sensor, key in _LIMITS.items():
        limit = part(gpu, "limit", key)
        if part(limit, "unit") == "C" and exact(part(limit, "value")) is not None:  # told beside: no other form of it takes a card's identity away
            _measured(limit, {"C": "degC"}, "K", "gpu.slowdown_temperature", found, f"limit.{key}", gpu=index, sensor=sensor)
    size = part(gpu, "vram", "size")
    if size is not None:
        _measured(size, _BYTES, "B", "gpu.memory", found, "vram.size", gpu=index)


def _link(pcie: Any, index: str, found: Collector) -> None:
    found.number(pcie, "width", "gpu.pcie_width", "lanes", gpu=index)
    if part(pcie, "speed") is None:
        found.absent("pcie.speed", None, gpu=index)
    else:
        _measured(part(pcie, "speed"), {"GT/s": "GT/s"}, "GT/s", "gpu.pcie_speed", found, "pcie.speed", gpu=index)
    for key, quantity in (("replay_count", "gpu.pcie_replays"), ("nak_sent_count", "gpu.pcie_naks")):
        raw = part(pcie, key)
        if raw is not None and not _not_told(raw):
            found.number(pcie, key, quantity, "1", gpu=index)


def _measured(raw: Any, units: dict[str, str], to: str, quantity: str, found: Collector, key: str, **labels: str) -> None:
    """Read {value, unit}; a bare number has no unit and is refused."""
    value, unit = (exact(raw), None) if exact(raw) is not None else (exact(part(raw, "value")), part(raw, "unit"))
    if value is None or value < 0:
        found.absent(key, str(raw), **labels)
    elif not isinstance(unit, str) or unit not in units:
        found.trouble("unknown_unit", "{key} is {raw}: its unit is not known.", "{key} 为 {raw}：单位未知。", key=key, raw=raw)
    else:
        found.see(quantity, value if units[unit] == to else convert(Decimal(value), units[unit], to), to, **labels)


def _not_told(raw: Any) -> bool:
    return isinstance(raw, str) and not available(raw)
