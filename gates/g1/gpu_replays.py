"""What the PCIe links of the GPUs mended by themselves: replays and refused packets, where a tool counts them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.g1.declared_host import GPU_REPLAYS
from gates.g1.gpu_heat import METRIC
from gates.g1.gpus import AMD, devices, gpu_lists
from gates.g1.links import Packs
from gates.g1.pack import HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

COUNTED = ("gpu.pcie_replays", "gpu.pcie_naks")


def replay_check(plan: Plan, engines: tuple[str, ...], survey: Packs) -> CheckResult | dict[str, Any]:
    """Return the advisory check over every GPU that its own tool lists; where no host's tool counts, there is nothing to judge."""
    hosts = [survey[host] for host in engines if not survey[host].trouble]
    if not any(pack.answer(METRIC).all(quantity) for pack in hosts for quantity in COUNTED):
        return GPU_REPLAYS.not_told(plan)
    findings = [finding for pack in hosts if pack.names(METRIC) for finding in _of_host(pack)]
    values = [f.value for f in findings if f.value is not None]
    passed = Text("The PCIe link of no GPU repeated or refused a packet ({n} in all).", "全部 {n} 块 GPU 的 PCIe 链路均无重传或拒收。")
    worst = sum(values, Decimal(0)) if values else None
    return conclude(GPU_REPLAYS.blank(plan), findings, passed=passed, value=worst, margin=None if worst is None else -worst)


def _of_host(pack: HostPack) -> list[Finding]:
    metric, lists = pack.answer(METRIC), [row for row in gpu_lists(pack) if row.tool in AMD]
    gap = next((row for row in (*lists, metric) if row.problems), None)
    if gap is not None:
        return [doubtful(pack.host, gap.problems, gap.path)]
    out = []
    for listed in lists:
        for device in devices(listed):
            told = {quantity: o.value for quantity in COUNTED if (o := metric.one(quantity, gpu=device.index)) is not None}
            counts = [value for value in told.values() if isinstance(value, Decimal)]
            words: dict[str, Any] = {"h": pack.host, "g": device.index, "n": f"{sum(counts, Decimal(0)):f}"}
            if COUNTED[0] not in told:  # a release may count no refused packets; one that counts no replays tells nothing
                text = "{h}: the PCIe replays of GPU {g} are not told", "{h}：未报告 GPU {g} 的 PCIe 重传次数"
                out.append(unknown(*text, metric.path, listed.path, **words))
                continue
            text = "{h}: GPU {g}: {n} PCIe packets repeated or refused", "{h}：GPU {g} 的 PCIe 报文重传或拒收 {n} 次"
            total = sum(counts, Decimal(0))
            out.append((bad if total else good)(*text, metric.path, value=total, **words))
    return out
