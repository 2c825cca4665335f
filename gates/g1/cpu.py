"""The processors of the hosts: as the plan's platform names them, alike on all engine hosts, every core switched on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.g1.declared_host import CPU
from gates.g1.order import same_model
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, State, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

NAME = "dmidecode-cpu"


@dataclass(frozen=True)
class Sockets:
    """The processors of one host, all of one kind."""

    model: str
    cores: int  # of each
    count: int


def cpu_check(plan: Plan, engines: tuple[str, ...], survey: Mapping[str, HostPack]) -> CheckResult | dict[str, Any]:
    """Return the check over all surveyed hosts. Where the plan names no processor and no host tells of its own, there is nothing to judge."""
    planned = plan.platform.cpu
    if planned is None and not any(NAME in pack.names("dmidecode") for pack in survey.values() if not pack.trouble):
        return CPU.not_told(plan)
    findings: list[Finding] = []
    seen: dict[Sockets, list[str]] = {}
    for host, pack in survey.items():
        if pack.trouble:
            findings.append(unknown("{why}", "{why}", why=pack.trouble))
            continue
        answer = pack.answer(NAME)
        found = doubtful(host, answer.problems, answer.path) if answer.problems else _of_host(host, answer)
        if isinstance(found, Finding):
            findings.append(found)
            continue
        findings.append(_as_planned(plan, host, found, answer) if host in engines else _told(host, found, answer))
        if host in engines:
            seen.setdefault(found, []).append(host)
    if len(seen) > 1:
        kinds = "; ".join(f"{', '.join(hosts)}: {_words(kind)}" for kind, hosts in seen.items())
        text = "the engine hosts have other processors than each other ({k})", "各引擎主机的处理器不一致（{k}）"
        findings.append(bad(*text, *(survey[host].answer(NAME).path for hosts in seen.values() for host in hosts), k=kinds))
    passed = Text("Processors are as they should be, with every core switched on (hosts: {k}).", "{k} 台主机的处理器符合要求，全部核心已启用。")
    value = Decimal(sum(1 for finding in findings if finding.state is State.BAD))
    return conclude(CPU.blank(plan), findings, passed=passed, words={"k": len(survey)}, value=value)


def _of_host(host: str, answer: Answer) -> Sockets | Finding:
    """Return what one host has, or why that is a breach or not known: a socket is told with its model, its cores and how many of them are on.

    A processor is known by its structure's handle: firmware may give two sockets one name.
    """
    sockets = {o.labels["handle"]: o.labels["socket"] for o in answer.all("cpu.model")}
    models = {o.labels["handle"]: str(o.value) for o in answer.all("cpu.model")}
    cores, on = ({o.labels["handle"]: o.value for o in answer.all(f"cpu.{key}")} for key in ("cores", "cores_enabled"))
    if not models or set(models) != set(cores) or set(models) != set(on):
        return unknown("{h}: not every processor is told with its cores", "{h}：并非每颗处理器都报告了核心数", answer.path, h=host)
    off = [f"{socket} {on[one]}/{cores[one]}" for one, socket in sorted(sockets.items(), key=lambda kept: kept[1]) if on[one] != cores[one]]
    if off:
        return bad("{h}: cores are switched off: {o}", "{h}：有核心未启用：{o}", answer.path, h=host, o=", ".join(off))
    kinds = {(models[socket], cores[socket]) for socket in models}
    if len(kinds) > 1:
        listed = "; ".join(f"{model}, {count}" for model, count in sorted(kinds, key=str))
        return bad("{h}: its processors differ: {k}", "{h}：各处理器不同：{k}", answer.path, h=host, k=listed)
    model, count = kinds.pop()
    return Sockets(model, int(count), len(models))


def _as_planned(plan: Plan, host: str, found: Sockets, answer: Answer) -> Finding:
    planned = plan.platform.cpu
    if planned is None or (same_model(planned.model, found.model) and (planned.sockets, planned.cores) == (found.count, found.cores)):
        return _told(host, found, answer)
    wanted = _words(Sockets(planned.model, planned.cores, planned.sockets))
    return bad("{h}: {v}; the plan names {w}", "{h}：{v}；计划为 {w}", answer.path, h=host, v=_words(found), w=wanted)


def _told(host: str, found: Sockets, answer: Answer) -> Finding:
    return good("{h}: {v}", "{h}：{v}", answer.path, h=host, v=_words(found))


def _words(kind: Sockets) -> str:
    return f"{kind.count} x {kind.model}, {kind.cores} cores"
