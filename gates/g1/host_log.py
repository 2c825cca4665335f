"""What the kernels of the hosts have written since they were started: faults of drives, links, memory and GPUs that no counter may show any more."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_arrival import KERNEL_LOG
from gates.g1.links import Packs
from gates.g1.pack import HostPack
from gates.model import CheckResult
from gates.readers.kernel_log import FAMILIES, TOLD_ONLY
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

NAME = "kernel-log"
NAMES = {
    "nvme_timeout": Text("NVMe time-outs", "NVMe 超时"),
    "nvme_fabric": Text("lost NVMe-oF connections", "NVMe-oF 连接丢失"),
    "block_io": Text("failed I/O", "I/O 失败"),
    "pcie_uncorrected": Text("uncorrected PCIe errors", "不可纠正 PCIe 错误"),
    "pcie_corrected": Text("corrected PCIe errors", "已纠正 PCIe 错误"),
    "machine_check": Text("machine checks", "机器检查异常"),
    "gpu": Text("GPU resets", "GPU 复位"),
    "link_down": Text("links that went down", "链路中断"),
    "hung_task": Text("tasks that hung", "任务挂起"),
    "file_system": Text("file systems or RAIDs that failed", "文件系统或 RAID 故障"),
    "out_of_memory": Text("processes killed for want of memory", "内存不足终止进程"),
}
_SOONER = Text(
    "a survey soon after a restart, or a journal that keeps the whole boot (journalctl -k -b), would tell",
    "重启后尽快调查，或保留完整启动日志的 journal（journalctl -k -b）方可判定",
)


def kernel_log_check(plan: Plan, survey: Packs) -> CheckResult | dict[str, Any]:
    """Return the check over every host that was surveyed."""
    brought = any(pack.names(NAME) for pack in survey.values() if not pack.trouble)
    findings = [_of_host(pack) for pack in survey.values()]
    values = [f.value for f in findings if f.value is not None]
    lines = sum((_count(pack, "kernel.lines") for pack in survey.values()), Decimal(0))
    mended = sum((_count(pack, "kernel.event", family) for pack in survey.values() for family in TOLD_ONLY), Decimal(0))
    passed = Text(
        "The kernel logs of {n} hosts, {l} lines since boot, tell no fault; PCIe errors that were corrected: {m}.",
        "{n} 台主机自启动以来的内核日志共 {l} 行，无故障记录；已纠正 PCIe 错误：{m}。",
    ).fill(n=len(survey), l=f"{lines:f}", m=f"{mended:f}")
    result = conclude(KERNEL_LOG.blank(plan), findings, passed=passed, value=sum(values, Decimal(0)) if values else None)
    return by_agreement(KERNEL_LOG, plan, result, brought=brought)


def _of_host(pack: HostPack) -> Finding:
    if pack.trouble:
        return unknown("{why}", "{why}", why=pack.trouble)
    answer = pack.answer(NAME)
    if answer.problems:
        return doubtful(pack.host, answer.problems, answer.path)
    told = {str(o.labels["family"]): o.value for o in answer.all("kernel.event") if isinstance(o.value, Decimal)}
    if set(told) != set(FAMILIES):
        return unknown("{h}: its log is not read as a whole", "{h}：日志未完整读取", answer.path, h=pack.host)
    faults = {family: count for family, count in told.items() if count and family not in TOLD_ONLY}
    if faults:
        return bad("{h}: {f}", "{h}：{f}", answer.path, value=sum(faults.values(), Decimal(0)), h=pack.host, f=_listed(pack, faults))
    whole = answer.one("kernel.whole")
    if whole is None or whole.value != 1:
        text = "{h}: the log no longer holds the beginning of this boot", "{h}：日志已不含本次启动的开头"
        return unknown(*text, answer.path, remedy=_SOONER, h=pack.host)
    return good("{h}: no fault", "{h}：无故障记录", answer.path, value=Decimal(0), h=pack.host)


def _listed(pack: HostPack, faults: dict[str, Decimal]) -> Text:
    """Return how many lines of which family there are, each with the first of them."""
    rows = []
    for family, count in faults.items():
        first = pack.answer(NAME).one("kernel.first", family=family)
        line = str(first.value)[:120] if first is not None else "?"
        rows.append(Text("{n} x {f} (“{line}”)", "{f} {n} 条（“{line}”）").fill(n=f"{count:f}", f=NAMES[family], line=line))
    return Text(", ".join(row.en for row in rows), "，".join(row.zh for row in rows))


def _count(pack: HostPack, quantity: str, family: str | None = None) -> Decimal:
    if pack.trouble or not pack.names(NAME):
        return Decimal(0)
    answer = pack.answer(NAME)
    seen = answer.one(quantity, family=family) if family else answer.one(quantity)
    return seen.value if seen is not None and isinstance(seen.value, Decimal) else Decimal(0)
