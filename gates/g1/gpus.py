"""The GPUs of a host, from whichever tool it has: amd-smi, or the older rocm-smi; npu-smi for Ascend."""

from __future__ import annotations

from dataclasses import dataclass

from gates.g1.pack import Answer, HostPack

AMD, ASCEND = ("amd-smi-static", "rocm-smi"), ("npu-smi",)


@dataclass(frozen=True)
class Device:
    """One GPU as one tool lists it. Empty where the tool does not tell. A card of several chips has one entry a chip."""

    index: str
    model: str
    serial: str
    address: str  # PCI, lower case
    firmware: str
    evidence: str


def gpu_lists(pack: HostPack) -> list[Answer]:
    """Return the lists of GPUs of one host: one a vendor. A host that ran none of the tools has the answer of one that was not run."""
    families = [next((name for name in names if pack.names(name)), "") for names in (AMD, ASCEND)]
    return [pack.answer(pack.names(tool)[0]) for tool in families if tool] or [pack.answer(AMD[0])]


def devices(answer: Answer) -> list[Device]:
    """Return the GPUs of one list, in its order."""
    labels = {tuple(sorted(o.labels.items())): o.labels for what in ("gpu.model", "gpu.serial", "gpu.address") for o in answer.all(what)}

    def told(what: str, of: dict[str, str]) -> str:
        found = answer.one(what, **of)
        return str(found.value) if found else ""

    return [
        Device(of["gpu"], told("gpu.model", of), told("gpu.serial", of), told("gpu.address", of).lower(), told("gpu.vbios", of), answer.path)
        for of in labels.values()
    ]
