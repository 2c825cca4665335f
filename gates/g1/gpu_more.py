"""The engine hosts' own parts: memory modules, ECC, PCIe link, firmware and stress of the GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import Declared, by_agreement
from gates.g1.declared_more import GPU_ECC, GPU_FIRMWARE, GPU_STRESS
from gates.g1.gpu_link import gpu_link_check
from gates.g1.gpu_stress import under_stress
from gates.g1.gpus import devices, gpu_answer, gpu_lists
from gates.g1.links import Packs
from gates.g1.memory import memory_check
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.readers.other_gpu import UNANSWERED
from gates.rules.findings import Finding, State, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan


def part_checks(plan: Plan, engines: tuple[str, ...], survey: Packs, *, gpus: bool) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the checks of the parts of the hosts; those of GPUs only where the order or the plan names GPUs."""
    yield memory_check(plan, survey)
    if not gpus:
        return
    yield gpu_link_check(plan, engines, survey)
    for declared, name, ask, each, passed in (
        (
            GPU_ECC,
            "amd-smi-metric",
            _ecc,
            "gpu.ecc_uncorrectable",
            Text("No uncorrectable or deferred ECC error on any host (hosts: {n}).", "{n} 台主机均无不可纠正或延迟 ECC 错误。"),
        ),
        (
            GPU_FIRMWARE,
            "amd-smi-firmware",
            _firmware,
            "gpu.firmware",
            Text("The GPUs of every host run equal firmware (hosts: {n}).", "{n} 台主机各 GPU 固件一致。"),
        ),
    ):
        yield _over(declared, plan, engines, survey, name, ask, passed, each)

    def stress(host: str, answer: Answer) -> Finding:
        return under_stress(host, answer, plan.g1.gpu_stress_spread_max)

    steady = Text("The GPUs of every host are steady under stress (hosts: {n}).", "{n} 台主机的 GPU 在压力下稳定。")
    yield _over(GPU_STRESS, plan, engines, survey, "rvs", stress, steady, "rvs.flops")


def _over(
    declared: Declared,
    plan: Plan,
    hosts: tuple[str, ...],
    survey: Packs,
    name: str,
    ask: Callable[[str, Answer], Finding],
    passed: Text,
    each_gpu: str = "",
) -> CheckResult | dict[str, Any]:
    """Return the check over all hosts. `each_gpu`: the quantity that the answer must tell of every GPU that the host lists, and of no other."""
    findings: list[Finding] = []
    brought = False
    for host in hosts:
        pack = survey[host]
        if pack.trouble:
            findings.append(unknown("{why}", "{why}", why=pack.trouble))
            continue
        answer = gpu_answer(pack, name)
        brought = brought or bool(answer.tool)
        troubles = [p for p in answer.problems if p.code != UNANSWERED]  # a check of the intervals finds that answer missing by itself
        finding = doubtful(host, troubles, answer.path) if troubles else ask(host, answer)
        findings.append((_not_every_gpu(pack, answer, each_gpu) if each_gpu and finding.state is State.GOOD else None) or finding)
    values = [f.value for f in findings if f.value is not None]
    worst = (min(values) if declared.direction == "higher" else max(values)) if values else None
    return by_agreement(declared, plan, conclude(declared.blank(plan), findings, passed=passed, value=worst), brought=brought)


def _not_every_gpu(pack: HostPack, answer: Answer, quantity: str) -> Finding | None:
    """Return what keeps an answer from being about all GPUs of a host, or None. rvs names GPUs by ids of its own, which only their number matches."""
    listed = gpu_lists(pack)
    gap = next((row for row in listed if row.problems), None)
    if gap is not None:
        return doubtful(pack.host, gap.problems, gap.path)
    wanted, told = {device.index for row in listed for device in devices(row)}, {o.labels["gpu"] for o in answer.all(quantity)}
    if len(wanted) == len(told) if answer.tool == "rvs" else wanted == told:
        return None
    words: dict[str, Any] = {"h": pack.host, "n": len(told), "m": len(wanted), "g": ", ".join(sorted(wanted ^ told))}
    if answer.tool == "rvs":
        return unknown("{h}: {n} GPUs were put under stress, {m} are listed", "{h}：{n} 块 GPU 接受了压力测试，清单为 {m} 块", answer.path, **words)
    text = "{h}: {n} GPUs are told of, {m} are listed (the difference: {g})", "{h}：报告了 {n} 块 GPU，清单为 {m} 块（差异：{g}）"
    return unknown(*text, answer.path, *(row.path for row in listed), **words)


def _ecc(host: str, answer: Answer) -> Finding:
    rows = [o for kind in ("uncorrectable", "deferred") for o in answer.all(f"gpu.ecc_{kind}") if isinstance(o.value, Decimal)]
    if not rows:
        return unknown("{h}: no ECC count is told", "{h}：未报告 ECC 计数", answer.path, h=host)
    counted = [(o.labels["gpu"], Decimal(str(o.value))) for o in rows if o.value]
    total = sum((value for _, value in counted), Decimal(0))
    words = {"h": host, "g": ", ".join(f"GPU {gpu}: {value:f}" for gpu, value in counted) or "0"}
    return (bad if total else good)("{h}: {g} ECC errors", "{h}：{g} 个 ECC 错误", answer.path, value=total, **words)


def _firmware(host: str, answer: Answer) -> Finding:
    by_block: dict[str, dict[str, str]] = {}
    for o in answer.all("gpu.firmware"):
        by_block.setdefault(o.labels["block"], {})[o.labels["gpu"]] = str(o.value)
    gpus = {gpu for versions in by_block.values() for gpu in versions}
    if not gpus:
        return unknown("{h}: no firmware of a GPU is told", "{h}：未报告 GPU 固件", answer.path, h=host)
    missing = sorted(block for block, versions in by_block.items() if set(versions) != gpus)
    if missing:
        return unknown("{h}: {b} is not told by every GPU", "{h}：并非每块 GPU 都报告 {b}", answer.path, h=host, b=", ".join(missing))
    differ = {block: sorted(set(versions.values())) for block, versions in by_block.items() if len(set(versions.values())) > 1}
    words = {"h": host, "n": len(gpus), "d": "; ".join(f"{block} {' / '.join(v)}" for block, v in differ.items())}
    if differ:
        return bad("{h}: firmware differs between GPUs: {d}", "{h}：各 GPU 固件不同：{d}", answer.path, value=Decimal(len(differ)), **words)
    return good("{h}: {n} GPUs", "{h}：{n} 块 GPU", answer.path, value=Decimal(0), **words)
