"""One answer to each check of a soak whose load several engine hosts share: that of the host that did worst, by its name.

A sum would let one host's health cover for another's. What all hosts do together (duration, the rate of failures, throughput) is judged of all
together, and of each by itself as well where a host can be seen by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gates.g4.series import Soak
from gates.model import CheckResult, Verdict
from gates.text import Text

Row = CheckResult | dict[str, Any]  # an answer, or the entry of what nothing tells
_WORST = (Verdict.FAIL, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.CONDITIONAL, Verdict.PASS)
_SILENT = Text("{h} does not tell it, and another engine host does.", "{h} 未给出该项，而其他引擎主机给出了。")
_CHANGE = Text("a soak in which {h} tells it too would tell", "{h} 也给出该项的稳定性运行方可判定")


def over_hosts(soak: Soak, ask: Callable[[Soak], Iterable[Row]], *, together: bool = False) -> list[Row]:
    """Return what `ask` returns of a soak, each check once: of several engine hosts (and with `together` of all as one) the worst answer.

    A host that does not tell what another one tells leaves the check open: it is never silently fine. Nothing is changed of a soak of one host.
    """
    if len(soak.places) < 2:
        return list(ask(soak))
    told = [(view.host, {_name(row): row for row in ask(view)}) for view in (*([soak] if together else []), *soak.places)]
    names = dict.fromkeys(name for _, rows in told for name in rows)
    return [_worst([(host, rows.get(name)) for host, rows in told]) for name in _without_entries(names, told)]


def _name(row: Row) -> str:
    return row.id if isinstance(row, CheckResult) else str(row["check"])


def _without_entries(names: Iterable[str], told: list[tuple[str | None, dict[str, Row]]]) -> Iterable[str]:
    """Return the names of all answers, and of entries only where no host answered a check of that declaration (`watched_` covers many)."""
    answered = {name for _, rows in told for name, row in rows.items() if isinstance(row, CheckResult)}
    return [name for name in names if name in answered or not any(one.startswith(name.partition("{")[0]) for one in answered)]


def _worst(found: list[tuple[str | None, Row | None]]) -> Row:
    answers = [(host, row) for host, row in found if isinstance(row, CheckResult)]
    if not answers:
        return next(row for _, row in found if row is not None)
    like = answers[0][1]
    for host, row in found:
        if not isinstance(row, CheckResult) and host is not None:
            lacking = replace(like, verdict=Verdict.INCONCLUSIVE, reason=_SILENT.fill(h=host), change=_CHANGE.fill(h=host), value=None, margin=None)
            answers.append((host, lacking))
    host, worst = min(answers, key=lambda one: (_WORST.index(one[1].verdict), one[1].margin is None, one[1].margin or 0))
    evidence = tuple(dict.fromkeys(path for _, row in answers for path in row.evidence))
    if host is None:
        return replace(worst, evidence=evidence)
    if len({row.reason for _, row in answers}) == 1:  # of each of them the same is so
        names = ", ".join(str(name) for name, _ in answers)
        return replace(worst, reason=Text("{h}, each: {r}", "{h} 均为：{r}").fill(h=names, r=worst.reason), evidence=evidence)
    return replace(worst, reason=Text("{h}: {r}", "{h}：{r}").fill(h=host, r=worst.reason), host=host, evidence=evidence)
