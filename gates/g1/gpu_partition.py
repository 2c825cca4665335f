"""How the GPUs of a host are divided and linked: compute and memory partition, and the mesh of XGMI links between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import Declared
from gates.g1.declared_host import GPU_MESH, GPU_PARTITION
from gates.g1.gpus import AMD, Device, devices, gpu_answer, gpu_lists
from gates.g1.links import Packs
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

XGMI, ENABLED = "XGMI", "ENABLED"
MESHED = re.compile(r"\bMI[23][0-9]{2}", re.IGNORECASE)  # Instinct of the 200 and 300 series: modules that XGMI links (AMD's data sheets)
Ask = Callable[["Plan", str, list[Device], Answer], Finding]


def partition_checks(plan: Plan, engines: tuple[str, ...], survey: Packs) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the checks of partitions and of the links between GPUs, over all engine hosts with GPUs of AMD."""
    yield _over(
        plan,
        engines,
        survey,
        GPU_PARTITION,
        _divided,
        Text("The GPUs of every host are divided alike (hosts: {n}).", "{n} 台主机的 GPU 分区方式一致。"),
    )
    meshed = Text("Every pair of GPUs of every host is linked (hosts: {n}).", "{n} 台主机的各对 GPU 之间链路正常。")
    yield _over(plan, engines, survey, GPU_MESH, _meshed, meshed)


def _over(plan: Plan, engines: tuple[str, ...], survey: Packs, declared: Declared, ask: Ask, passed: Text) -> CheckResult | dict[str, Any]:
    name = "amd-smi-partition" if declared is GPU_PARTITION else "amd-smi-topology"
    planned = declared is GPU_PARTITION and plan.platform.partition is not None
    hosts = [host for host in engines if planned or survey[host].trouble or gpu_answer(survey[host], name).tool]
    if all(survey[host].trouble for host in hosts) and not planned:
        return declared.not_told(plan)
    findings = [_of_host(plan, survey[host], name, ask) for host in hosts]
    values = [f.value for f in findings if f.value is not None]
    return conclude(declared.blank(plan), findings, passed=passed, value=max(values, default=None))


def _of_host(plan: Plan, pack: HostPack, name: str, ask: Ask) -> Finding:
    if pack.trouble:
        return unknown("{why}", "{why}", why=pack.trouble)
    answer, listed = gpu_answer(pack, name), [row for row in gpu_lists(pack) if row.tool in AMD]
    gap = next((row for row in (*listed, answer) if row.problems), None)
    if gap is not None:
        return doubtful(pack.host, gap.problems, gap.path)
    return ask(plan, pack.host, [device for row in listed for device in devices(row)], answer)


def _divided(plan: Plan, host: str, gpus: list[Device], answer: Answer) -> Finding:
    modes = {what: {o.labels["gpu"]: str(o.value) for o in answer.all(f"gpu.{what}_partition")} for what in ("compute", "memory")}
    wanted = {device.index for device in gpus}
    told = set(modes["compute"]) & set(modes["memory"])
    if not told or told != wanted:
        words: dict[str, Any] = {"h": host, "g": ", ".join(sorted(wanted ^ told, key=_number)) or "-"}
        return unknown("{h}: the partitions of GPU {g} are not told", "{h}：未报告 GPU {g} 的分区", answer.path, **words)
    kinds: dict[tuple[str, str], list[str]] = {}
    for gpu in sorted(told, key=_number):
        kinds.setdefault((modes["compute"][gpu], modes["memory"][gpu]), []).append(gpu)
    shown = "; ".join(f"GPU {', '.join(members)}: {compute}, {memory}" for (compute, memory), members in kinds.items())
    words = {"h": host, "v": shown}
    planned = plan.platform.partition
    if planned is not None and set(kinds) != {(planned.compute, planned.memory)}:
        text = "{h}: {v}; the plan names {c}, {m}", "{h}：{v}；计划为 {c}，{m}"
        return bad(*text, answer.path, value=Decimal(max(2, len(kinds))), **words, c=planned.compute, m=planned.memory)
    if len(kinds) > 1:
        return bad("{h}: the GPUs are divided in several ways: {v}", "{h}：各 GPU 分区方式不同：{v}", answer.path, value=Decimal(len(kinds)), **words)
    return good("{h}: {v}", "{h}：{v}", answer.path, value=Decimal(1), **words)


def _meshed(_: Plan, host: str, gpus: list[Device], answer: Answer) -> Finding:
    """Hold every ordered pair of GPUs against what links them: told from both sides, switched on, and XGMI where the model has it."""
    pairs = {(a.index, b.index) for a in gpus for b in gpus if a.index != b.index}
    kinds, states = ({(o.labels["gpu"], o.labels["to"]): str(o.value).upper() for o in answer.all(f"gpu.link_{key}")} for key in ("type", "status"))
    wanted = XGMI if any(MESHED.search(device.model) for device in gpus) else None
    off = sorted(pair for pair in pairs if states.get(pair, ENABLED) != ENABLED)
    other = sorted(pair for pair in pairs if wanted and kinds.get(pair, wanted) != wanted)
    if off or other:
        worst = [f"{a}-{b}: {kinds.get((a, b), '?')}, {states.get((a, b), '?')}" for a, b in dict.fromkeys((*off, *other))]
        words: dict[str, Any] = {"h": host, "n": len(worst), "p": "; ".join(worst[:4])}
        return bad(
            "{h}: {n} links between GPUs are not as they should be ({p})",
            "{h}：{n} 条 GPU 间链路异常（{p}）",
            answer.path,
            value=Decimal(len(worst)),
            **words,
        )
    silent = sorted(pairs - (set(kinds) & set(states)))
    if silent or not gpus:
        words = {"h": host, "n": len(silent), "p": ", ".join(f"{a}-{b}" for a, b in silent[:4])}
        return unknown("{h}: {n} links between GPUs are not told ({p})", "{h}：未报告 {n} 条 GPU 间链路（{p}）", answer.path, **words)
    shown = ", ".join(sorted({kinds[pair] for pair in pairs})) or "-"
    return good("{h}: {n} GPUs, {k}", "{h}：{n} 块 GPU，{k}", answer.path, value=Decimal(0), h=host, n=len(gpus), k=shown)


def _number(index: str) -> tuple[int, str]:
    return (int(index), index) if index.isdigit() else (10**9, index)
