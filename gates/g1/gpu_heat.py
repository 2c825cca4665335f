"""Heat of the GPUs as they arrived: each sensor against the card's own slowdown limit, and whether heat throttles any now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import Declared
from gates.g1.declared_host import GPU_HEAT, GPU_THROTTLE
from gates.g1.gpus import AMD, Device, devices, gpu_lists
from gates.g1.links import Packs
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

METRIC = "amd-smi-metric"
Ask = Callable[[str, Device, Answer, Answer], Finding]


def heat_checks(plan: Plan, engines: tuple[str, ...], survey: Packs) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the advisory checks of heat and of throttling over every GPU of AMD of the engine hosts."""
    cool = Text("Every GPU is below its own slowdown temperature ({n} in all).", "全部 {n} 块 GPU 均低于自身降频温度。")
    yield _over(plan, engines, survey, GPU_HEAT, _heat, cool)
    yield _over(plan, engines, survey, GPU_THROTTLE, _throttled, Text("Heat throttles none of the {n} GPUs.", "{n} 块 GPU 均未因过热降频。"))


def _over(plan: Plan, engines: tuple[str, ...], survey: Packs, declared: Declared, ask: Ask, passed: Text) -> CheckResult | dict[str, Any]:
    hosts = [host for host in engines if not survey[host].trouble and survey[host].names(METRIC)]
    if not hosts:
        return declared.not_told(plan)
    findings = [finding for host in hosts for finding in _of_host(survey[host], ask)]
    values = [f.value for f in findings if f.value is not None]
    worst = (min if declared.direction == "higher" else max)(values, default=None)
    blank = declared.blank(plan)
    margin = None if worst is None else (worst - Decimal(str(blank.limit.low)) if declared.direction == "higher" else -worst)
    return conclude(blank, findings, passed=passed, value=worst, margin=margin)


def _of_host(pack: HostPack, ask: Ask) -> Iterator[Finding]:
    metric, lists = pack.answer(METRIC), [row for row in gpu_lists(pack) if row.tool in AMD]
    gap = next((row for row in (*lists, metric) if row.problems), None)
    if gap is not None:
        yield doubtful(pack.host, gap.problems, gap.path)
        return
    for listed in lists:
        yield from (ask(pack.host, device, listed, metric) for device in devices(listed))


def _heat(host: str, device: Device, listed: Answer, metric: Answer) -> Finding:
    """Hold the sensor that is nearest to its limit against it. A sensor without a limit is left out; without any pair nothing is known."""
    paths = (listed.path, metric.path)
    pairs = []
    for limit in listed.all("gpu.slowdown_temperature", gpu=device.index):
        sensor = limit.labels["sensor"]
        heat = metric.one("gpu.temperature", gpu=device.index, sensor=sensor)
        if heat is not None and isinstance(heat.value, Decimal) and isinstance(limit.value, Decimal):
            pairs.append((limit.value - heat.value, sensor))
    if not pairs:
        text = "{h}: no temperature of GPU {g} with its slowdown limit is told", "{h}：未报告 GPU {g} 的温度及其降频阈值"
        return unknown(*text, *paths, h=host, g=device.index)
    left, sensor = min(pairs)
    text = "{h}: GPU {g} is {v} K from its slowdown limit at {k}", "{h}：GPU {g} 的 {k} 距降频阈值 {v} K"
    return (good if left >= 1 else bad)(*text, *paths, value=left, h=host, g=device.index, v=f"{left:f}", k=sensor)


def _throttled(host: str, device: Device, _: Answer, metric: Answer) -> Finding:
    """Ask what throttles the GPU now; where its tool tells no causes, whether anything does."""
    told = metric.all("gpu.throttle_cause", gpu=device.index) or metric.all("gpu.throttle", gpu=device.index)
    if not told:
        text = "{h}: whether GPU {g} is throttled is not told", "{h}：未报告 GPU {g} 是否降频"
        return unknown(*text, metric.path, h=host, g=device.index)
    causes = [o.labels.get("cause", str(o.value)) for o in told if str(o.value) in ("ACTIVE", "THROTTLED")]
    words = {"h": host, "g": device.index, "c": ", ".join(causes) or "-"}
    text = "{h}: GPU {g} is throttled ({c})", "{h}：GPU {g} 处于降频状态（{c}）"
    return (bad if causes else good)(*text, metric.path, value=Decimal(len(causes)), **words)
