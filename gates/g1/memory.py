"""The memory modules of the hosts: alike within a host, told whole, and as many as in other hosts of the same product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gates.declared import by_agreement
from gates.g1.declared_more import MEMORY
from gates.g1.pack import Answer, HostPack
from gates.model import CheckResult
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan


def memory_check(plan: Plan, survey: Mapping[str, HostPack]) -> CheckResult | dict[str, Any]:
    """Return the check over all surveyed hosts.

    A module that is not there looks like an empty slot. It shows by its absence: fewer modules than in a host of the same product, or an odd
    number of them, which no server is delivered with.
    """
    answers = {host: pack.answer("dmidecode") for host, pack in survey.items() if not pack.trouble}
    findings = [unknown("{why}", "{why}", why=pack.trouble) for pack in survey.values() if pack.trouble]
    findings += [doubtful(host, a.problems, a.path) if a.problems else _alike(host, a) for host, a in answers.items()]
    findings += _counted({host: a for host, a in answers.items() if not a.problems})
    values = [f.value for f in findings if f.value is not None]
    passed = Text("The memory modules of {k} hosts are alike and whole in number.", "{k} 台主机的内存条一致且数量齐整。")
    brought = any(answer.tool for answer in answers.values())
    result = conclude(MEMORY.blank(plan), findings, passed=passed, words={"k": len(answers)}, value=max(values) if values else None)
    return by_agreement(MEMORY, plan, result, brought=brought)


def _sizes(answer: Answer) -> list[Decimal]:
    return [Decimal(str(o.value)) for o in answer.all("memory.size") if o.value != 0]


def _alike(host: str, answer: Answer) -> Finding:
    sizes, speeds = set(_sizes(answer)), {o.value for o in answer.all("memory.speed")}
    modules, slots = len(_sizes(answer)), len(answer.all("memory.size"))
    if not modules or len(answer.all("memory.speed")) != modules:
        return unknown("{h}: not every memory module is told with its speed", "{h}：并非每条内存都报告了速率", answer.path, h=host)
    kinds = Decimal(max(len(sizes), len(speeds)))
    told = ", ".join(f"{int(s) // 2**30} GiB" for s in sorted(sizes)), ", ".join(f"{v} MT/s" for v in sorted(speeds, key=str))
    words: dict[str, Any] = {"h": host, "n": modules, "m": slots, "a": told[0], "b": told[1]}
    if kinds == 1 and modules % 2:
        text = "{h}: {n} modules in {m} slots is an odd number: one may be missing", "{h}：{m} 个插槽中有 {n} 条内存，为奇数：可能缺一条"
        return unknown(*text, answer.path, **words)
    text = "{h}: {n} modules of {a}, {b}, in {m} slots", "{h}：{m} 个插槽中有 {n} 条 {a}，{b}"
    return (good if kinds == 1 else bad)(*text, answer.path, value=kinds, **words)


def _counted(answers: Mapping[str, Answer]) -> Iterator[Finding]:
    """Yield a breach for each host that holds fewer modules than another host of the same product."""
    products: dict[str, list[str]] = {}
    for host, answer in answers.items():
        product = answer.one("system.product")
        products.setdefault(str(product.value) if product else host, []).append(host)
    for hosts in products.values():
        most = max(hosts, key=lambda host: len(_sizes(answers[host])))
        for host in hosts:
            have, best = len(_sizes(answers[host])), len(_sizes(answers[most]))
            if have < best:
                words: dict[str, Any] = {"h": host, "n": have, "o": most, "m": best}
                text = "{h}: {n} memory modules; {o}, the same product, has {m}", "{h}：{n} 条内存；同型号的 {o} 为 {m} 条"
                yield bad(*text, answers[host].path, answers[most].path, **words)
