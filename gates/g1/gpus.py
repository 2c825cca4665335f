"""The GPUs of a host, from whichever tool it has: amd-smi, or the older rocm-smi; npu-smi for Ascend."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gates.g1.pack import Answer, HostPack
from gates.model import Observation, Reading

AMD, ASCEND = ("amd-smi-static", "rocm-smi"), ("npu-smi",)
# What a check asks of amd-smi, and the tools that answer the same on a host that has another one.
OTHERS = {
    "amd-smi-metric": ("amd-smi-metric", "gpu-ras", "npu-smi-ecc"),
    "amd-smi-firmware": ("amd-smi-firmware", "rocm-smi", "npu-smi-board"),
    "amd-smi-partition": ("amd-smi-partition", "rocm-smi-partition"),
}


_NAMES = ("gpu.model", "gpu.serial", "gpu.address")


@dataclass(frozen=True)
class Device:
    """One GPU as one tool lists it. Empty where the tool does not tell. A card of several chips has one entry a chip."""

    index: str
    model: str
    serial: str
    address: str  # PCI, lower case
    firmware: str
    evidence: str
    chip: str = ""  # of a card that has several


def gpu_lists(pack: HostPack) -> list[Answer]:
    """Return the lists of GPUs of one host: one a vendor. A host that ran none of the tools has the answer of one that was not run."""
    families = [next((name for name in names if pack.names(name)), "") for names in (AMD, ASCEND)]
    return [_joined(pack, (tool, "npu-smi-board") if tool in ASCEND else (tool,)) for tool in families if tool] or [pack.answer(AMD[0])]


def gpu_answer(pack: HostPack, name: str) -> Answer:
    """Return what amd-smi would answer, from whichever tool the host ran; where it ran none, the answer of one that was not run."""
    return _joined(pack, OTHERS.get(name, (name,)))


def _joined(pack: HostPack, tools: tuple[str, ...]) -> Answer:
    """Return the outputs of some tools as one answer, e.g. of one command a card."""
    answers = [pack.answer(name) for tool in tools for name in pack.names(tool)]
    if not answers:
        return pack.answer(tools[0])
    first = answers[0]
    if len(answers) == 1 and first.tool != "gpu-ras":
        return first
    seen = tuple(_by_index(pack, o) if a.tool == "gpu-ras" else o for a in answers for o in a.reading.observations)
    return replace(first, reading=Reading(seen, tuple(p for a in answers for p in a.problems)))


def _by_index(pack: HostPack, told: Observation) -> Observation:
    """Name a GPU that the kernel names by its address as the host's list does."""
    index = next((d.index for row in gpu_lists(pack) for d in devices(row) if d.address == told.labels.get("address")), "?")
    return replace(told, labels={**told.labels, "gpu": index})


def devices(answer: Answer) -> list[Device]:
    """Return the GPUs of one list, in its order."""
    labels = {(o.labels["gpu"], o.labels.get("chip", "")): o.labels for what in _NAMES for o in answer.all(what)}
    split = {gpu for gpu, chip in labels if chip}  # what is told of such a card as a whole is told of each of its chips

    def told(what: str, gpu: str, chip: str) -> str:
        values = {str(o.value) for o in answer.all(what, gpu=gpu) if o.labels.get("chip", chip) == chip}
        return values.pop() if len(values) == 1 else ""

    return [
        Device(
            index=gpu,
            model=told("gpu.model", gpu, chip),
            serial=told("gpu.serial", gpu, chip),
            address=told("gpu.address", gpu, chip).lower(),
            firmware=told("gpu.vbios", gpu, chip),
            evidence=answer.path,
            chip=chip,
        )
        for gpu, chip in labels
        if chip or gpu not in split
    ]
