"""From findings about single subjects to one check: any breach fails, else anything unknown is inconclusive, else it passes.

Nothing to judge is inconclusive, never a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any

from gates import remedies
from gates.model import CheckResult, Limit, Problem, Verdict
from gates.text import Text, clauses

SHOWN = 8  # subjects named in one reason; the evidence holds all
_NAMED = Text("an order and a packing list that name such parts would give something to judge", "订单与装箱单列出此类部件后方有可判定的对象")


class State(Enum):
    """How one subject stands."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """What is known about one subject (a serial number, a host, an order line) for one question."""

    state: State
    text: Text  # a clause that names the subject: "QF26K0A00104 is missing"
    evidence: tuple[str, ...] = ()
    value: Decimal | None = None
    change: Text | None = None  # of what is unknown: what would tell, where it is not the evidence alone


def good(en: str, zh: str, *evidence: str, value: Decimal | None = None, **words: Any) -> Finding:
    """Return a finding without a breach."""
    return Finding(State.GOOD, Text(en, zh).fill(**words), tuple(evidence), value)


def bad(en: str, zh: str, *evidence: str, value: Decimal | None = None, **words: Any) -> Finding:
    """Return a breach."""
    return Finding(State.BAD, Text(en, zh).fill(**words), tuple(evidence), value)


def unknown(en: str, zh: str, *evidence: str, remedy: Text | None = None, **words: Any) -> Finding:
    """Return a finding of something that is missing or not told. `remedy`: what would tell, where it is not that the evidence tells it."""
    return Finding(State.UNKNOWN, Text(en, zh).fill(**words), tuple(evidence), change=remedy or remedies.told(evidence))


def doubtful(subject: str, problems: Sequence[Problem], *evidence: str) -> Finding:
    """Return the finding of evidence that has problems, with the first of them in words."""
    why = problems[0].message if problems else Text("nothing was found", "未找到")
    return unknown("{subject}: {why}", "{subject}：{why}", *evidence, remedy=remedies.whole(evidence), subject=subject, why=why)


def conclude(
    blank: CheckResult,
    findings: Iterable[Finding],
    *,
    passed: Text,
    words: Mapping[str, Any] = MappingProxyType({}),
    value: Decimal | str | None = None,
    limit: Limit | None = None,
    margin: Decimal | None = None,
) -> CheckResult:
    """Return the declared check with its answer for all findings of one question; `limit` where only the order or the part tells it.

    `words` fill the placeholders of `passed` beside `{n}`, the number of findings: all at once, since a name may hold braces of its own.
    """
    all_of = list(findings)
    breaches = [f for f in all_of if f.state is State.BAD]
    gaps = [f for f in all_of if f.state is State.UNKNOWN]
    change = None
    if breaches:
        verdict, reason = Verdict.FAIL, listed(breaches)
    elif gaps:
        verdict, reason = Verdict.INCONCLUSIVE, listed(gaps)
        change = gaps[0].change or remedies.told(gaps[0].evidence)
    elif not all_of:
        verdict, reason = Verdict.INCONCLUSIVE, Text("There was nothing to judge.", "没有可供判定的对象。")
        change = _NAMED
    else:
        verdict, reason = Verdict.PASS, passed.fill(n=len(all_of), **words)
    return replace(
        blank,
        verdict=verdict,
        reason=reason,
        value=value,
        limit=limit or blank.limit,
        margin=margin,
        change=change,
        evidence=tuple(sorted({path for f in (breaches or gaps or all_of) for path in f.evidence})),
    )


def listed(findings: Sequence[Finding]) -> Text:
    """Return the clauses of several findings as one sentence, each clause once."""
    said = list(dict.fromkeys(f.text for f in findings))
    shown, more = clauses(said[:SHOWN]), len(said) - SHOWN
    if more > 0:
        return Text(f"{shown.en}; and {more} more.", f"{shown.zh}；另有 {more} 项。")
    return Text(f"{shown.en}.", f"{shown.zh}。")


def left_out(check: str, title: Text, reason: Text) -> dict[str, Any]:
    """Return an entry of what was not tested, with its reason."""
    return {"check": check, "title": title.json(), "reason": reason.json()}
