"""What amd-smi says of a host beside its GPUs' own figures: `amd-smi list|partition|topology|version --json`.

list: gpu.address, gpu.uuid, gpu.partition_id (text; label `gpu`).
partition: gpu.compute_partition, gpu.memory_partition (text; label `gpu`), e.g. SPX and NPS1.
topology: gpu.link_type, gpu.link_status (text), gpu.link_weight, gpu.link_hops (1); labels `gpu` and `to`. Hops are the tool's, no count of cables.
version: software.version (text; label `part`: tool, library, rocm, driver).
"""

from __future__ import annotations

from typing import Any

from gates.model import Reading
from gates.readers.amd_smi import gpus
from gates.readers.common import Collector, available, exact, load_json, part, rows

_PARTS = (("version", "tool"), ("amdsmi_library_version", "library"), ("rocm_version", "rocm"), ("amdgpu_version", "driver"))
_SELF = "SELF"


def read_amd_smi_list(data: bytes) -> Reading:
    """Read address and identity of each GPU of one host."""
    found = Collector()
    for gpu, index in gpus(data, found):
        found.text(gpu, "bdf", "gpu.address", gpu=index)
        found.text(gpu, "uuid", "gpu.uuid", gpu=index)
        partition = exact(gpu.get("partition_id"))
        if partition is not None:
            found.see("gpu.partition_id", f"{partition:f}", "text", gpu=index)
    return found.reading()


def read_amd_smi_partition(data: bytes) -> Reading:
    """Read how each GPU is divided. `N/A`, which some releases write for all of it, is a problem and no partition."""
    found = Collector()
    document = load_json(data, found)
    current = rows(document, "current_partition")
    if document is not None and not current:
        found.trouble("empty_inventory", "amd-smi names no current partition.", "amd-smi 未列出任何当前分区。")
    seen: set[str] = set()
    for row in current:
        index = exact(row.get("gpu_id"))
        if index is None:
            found.absent("gpu_id", row.get("gpu_id"))
            continue
        labels = {"gpu": str(index)}
        if labels["gpu"] in seen:
            found.trouble("duplicate", "GPU {gpu} stands twice.", "GPU {gpu} 重复出现。", gpu=index)
            continue
        seen.add(labels["gpu"])
        found.text(row, "accelerator_type", "gpu.compute_partition", **labels)
        found.text(row, "memory", "gpu.memory_partition", **labels)
    return found.reading()


def read_amd_smi_topology(data: bytes) -> Reading:
    """Read the link of each GPU to each other one. A GPU without any link to another is a problem on a host that has others."""
    found = Collector()
    listed = gpus(data, found)
    for gpu, index in listed:
        links = [link for link in rows(gpu, "links") if link.get("link_type") != _SELF]
        if not links and len(listed) > 1:
            found.absent("links", gpu.get("links"), gpu=index)
        for link in links:
            _link(link, index, found)
    return found.reading()


def _link(link: dict[str, Any], index: str, found: Collector) -> None:
    to = exact(link.get("gpu"))
    if to is None:
        found.absent("links.gpu", link.get("gpu"), gpu=index)
        return
    labels = {"gpu": index, "to": str(to)}
    found.text(link, "link_type", "gpu.link_type", **labels)
    status = link.get("link_status")
    if isinstance(status, str) and available(status):
        found.see("gpu.link_status", status.strip(), "text", **labels)
    for key, quantity in (("weight", "gpu.link_weight"), ("num_hops", "gpu.link_hops")):
        if exact(link.get(key)) is not None:
            found.number(link, key, quantity, "1", **labels)


def read_amd_smi_version(data: bytes) -> Reading:
    """Read the versions of tool, library, ROCm and driver. A library without its version is a problem; the others are told where known."""
    found = Collector()
    document = load_json(data, found)
    told = rows(document)[0] if rows(document) else document
    for key, name in _PARTS:
        value = part(told, key)
        if name == "library" and document is not None:
            found.text(told, key, "software.version", part=name)
        elif isinstance(value, str) and available(value):
            found.see("software.version", value.strip(), "text", part=name)
    return found.reading()
