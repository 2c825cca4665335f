"""The switch's own view of the lossless network: pause storms that its PFC watchdog has detected, where the site lets a host ask it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_arrival import STORMS
from gates.g1.links import Packs
from gates.g1.pack import Answer
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

TOOL = "sonic-pfcwd"
_ASK = Text(
    "targets.pfc_watchdog that names a switch, a host and its command (show pfcwd stats --empty) would bring it",
    "在 targets.pfc_watchdog 中写明交换机、主机与命令（show pfcwd stats --empty）即可取得",
)


def storm_check(plan: Plan, survey: Packs) -> CheckResult | dict[str, Any]:
    """Return the check over every switch that was asked, whichever host asked it."""
    packs = [pack for pack in survey.values() if not pack.trouble]
    findings = [_of_switch(answer) for pack in packs for answer in pack.answers(TOOL)]
    brought = bool(findings)
    if not brought:
        findings.append(unknown("no switch was asked", "未询问任何交换机", remedy=_ASK))
    values = [f.value for f in findings if f.value is not None]
    passed = Text("The PFC watchdog of every switch has detected no storm ({n} in all).", "全部 {n} 台交换机的 PFC 看门狗均未检测到风暴。")
    result = conclude(STORMS.blank(plan), findings, passed=passed, value=sum(values, Decimal(0)) if values else None)
    return by_agreement(STORMS, plan, result, brought=brought)


def _of_switch(answer: Answer) -> Finding:
    name = answer.name.partition(".")[2]
    if answer.problems:
        return doubtful(name, answer.problems, answer.path)
    storms = {o.labels["queue"]: o.value for o in answer.all("switch.storms") if isinstance(o.value, Decimal)}
    stormed = {o.labels["queue"] for o in answer.all("switch.queue_state") if str(o.value).lower() == "stormed"}
    told = {queue: max(count, Decimal(int(queue in stormed))) for queue, count in storms.items() if count or queue in stormed}
    words: dict[str, Any] = {"s": name, "n": len(storms), "q": ", ".join(f"{queue} {count:f}" for queue, count in list(told.items())[:6])}
    if told:
        return bad("{s}: pause storms on {q}", "{s}：队列出现暂停风暴：{q}", answer.path, value=sum(told.values(), Decimal(0)), **words)
    return good("{s}: {n} queues", "{s}：{n} 个队列", answer.path, value=Decimal(0), **words)
