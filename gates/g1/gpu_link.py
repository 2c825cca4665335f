"""The PCIe link of each GPU against what the device itself is rated for: eight that are all too narrow are alike, and wrong."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_more import GPU_LINK
from gates.g1.gpus import Device, devices, gpu_lists
from gates.g1.links import IDLE, KEYS, Packs
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

METRIC = "amd-smi-metric"


_UNDER_LOAD = Text("a survey while the GPUs are under load would tell", "在 GPU 加载期间重新调查方可判定")


def gpu_link_check(plan: Plan, engines: tuple[str, ...], survey: Packs) -> CheckResult | dict[str, Any]:
    """Return the check over every GPU of the engine hosts: its width and speed now, as amd-smi or lspci tells them, against its rating.

    A narrow link is a breach. A slow one may be resting, since no load runs while it is read: that is inconclusive.
    """
    findings = [finding for host in engines for finding in _of_host(survey[host])]
    brought = any(pack.names(METRIC) or pack.names("lspci") for pack in (survey[host] for host in engines) if not pack.trouble)
    values = [f.value for f in findings if f.value is not None]
    passed = Text("Every GPU has the PCIe link that it is rated for ({n} in all).", "全部 {n} 块 GPU 的 PCIe 链路均达到额定值。")
    return by_agreement(GPU_LINK, plan, conclude(GPU_LINK.blank(plan), findings, passed=passed, value=min(values, default=None)), brought=brought)


def _of_host(pack: HostPack) -> Iterator[Finding]:
    if pack.trouble:
        yield unknown("{why}", "{why}", why=pack.trouble)
        return
    sources = [pack.answer(name) for name in (METRIC, IDLE) if name == METRIC or pack.names("lspci")]
    metric = sources[0]
    if metric.tool and metric.problems:
        yield doubtful(pack.host, metric.problems, metric.path)
    for listed in gpu_lists(pack):
        if listed.problems:
            yield doubtful(pack.host, listed.problems, listed.path)
        for device in devices(listed):
            yield _of_device(pack.host, device, listed, [s for s in sources if s.tool])


def _of_device(host: str, device: Device, listed: Answer, sources: list[Answer]) -> Finding:
    paths = [listed.path, *(s.path for s in sources)]
    told: dict[str, tuple[Decimal, Decimal]] = {}
    for key in ("width", "speed"):
        now = _first(
            [(s, f"gpu.pcie_{key}", {"gpu": device.index}) for s in sources] + [(s, f"pci.{key}", {"address": device.address}) for s in sources]
        )
        rated = _first(
            [(listed, f"gpu.pcie_{key}_rated", {"gpu": device.index})] + [(s, f"pci.{key}_rated", {"address": device.address}) for s in sources]
        )
        if now is None or rated is None or rated <= 0:
            text = "{h}: PCIe {k} of GPU {g} or what it is rated for is not told", "{h}：未报告 GPU {g} 的 PCIe {k}或其额定值"
            return unknown(*text, *paths, h=host, g=device.index, k=KEYS[key])
        told[key] = (now, rated)
    (width, widest), (speed, fastest) = told["width"], told["speed"]
    words: dict[str, Any] = {"h": host, "g": device.index, "w": f"{width:f}", "best": f"{widest:f}", "s": f"{speed:f}", "top": f"{fastest:f}"}
    if width < widest:
        return bad("{h}: GPU {g} has x{w}, rated x{best}", "{h}：GPU {g} 为 x{w}，额定 x{best}", *paths, value=width, **words)
    if speed < fastest:
        text = "{h}: GPU {g} runs at {s} of {top} GT/s, read without load", "{h}：GPU {g} 为 {s} GT/s，额定 {top} GT/s（空载读取）"
        return unknown(*text, *paths, remedy=_UNDER_LOAD, **words)
    return good("{h}: GPU {g} x{w}", "{h}：GPU {g} x{w}", *paths, value=width, **words)


def _first(places: list[tuple[Answer, str, dict[str, str]]]) -> Decimal | None:
    for answer, quantity, labels in places:
        found = answer.one(quantity, **labels) if all(labels.values()) else None
        if found is not None and isinstance(found.value, Decimal):
            return found.value
    return None
