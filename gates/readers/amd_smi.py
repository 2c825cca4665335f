"""`amd-smi static --json`: a list of GPUs, or the `gpu_data` wrapper of newer versions.

Observations, labelled `gpu` (index): gpu.model, gpu.device_id, gpu.serial, gpu.address, gpu.vbios (text), gpu.memory (B).
"""

from __future__ import annotations

from typing import Any

from gates.model import Reading
from gates.readers.common import Collector, available, exact, load_json, part, rows

_BYTES = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}  # amd-smi counts in powers of 1024


def read_amd_smi_static(data: bytes) -> Reading:
    """Read the GPUs of one host. The text `N/A` is no value."""
    found = Collector()
    document = load_json(data, found)
    if document is None:
        return found.reading()
    gpus = rows(document) if isinstance(document, list) else rows(document, "gpu_data")
    if not gpus:
        found.trouble("empty_inventory", "amd-smi names no GPU.", "amd-smi 未列出任何 GPU。")
    for gpu in gpus:
        index = exact(gpu.get("gpu"))
        if index is None:
            found.absent("gpu", gpu.get("gpu"))
            continue
        _gpu(gpu, str(index), found)
    return found.reading()


def _gpu(gpu: dict[str, Any], index: str, found: Collector) -> None:
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
    size = part(gpu, "vram", "size")
    value, unit = exact(part(size, "value")), part(size, "unit")
    if value is not None and isinstance(unit, str) and unit in _BYTES:
        found.see("gpu.memory", value * _BYTES[unit], "B", gpu=index)
    elif size is not None:
        found.absent("vram.size", str(size), gpu=index)
