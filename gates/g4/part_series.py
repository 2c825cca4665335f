"""Figures of one part over the readings of a soak: told from beginning to end or not known, and grown by how much."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from gates import remedies
from gates.declared import Declared
from gates.g4.series import Soak
from gates.g4.timeline import Boot
from gates.model import CheckResult
from gates.readers.soak_health import FILE, Health, Part
from gates.rules.estimates import NS
from gates.rules.findings import Finding, conclude, unknown
from gates.text import Text

# Real time on any rig: parts are asked once a minute, and two questions may go unanswered (as with the counters that programs tell).
_APART_NS = 150 * NS


@dataclass(frozen=True)
class Readings:
    """What the checks of parts are made from."""

    soak: Soak
    health: Health
    silence: Text | None  # why nothing can be said of any part

    @property
    def path(self) -> str:
        """Return the bundle path of the journal."""
        return self.soak.pack.path(FILE)

    def conclude(
        self, declared: Declared, kind: str, ask: Callable[[Part], Finding], passed: Text, *, parts: Mapping[str, Part] | None = None
    ) -> CheckResult | dict[str, Any]:
        """Return the check over all parts of a kind, or of these; an entry of what is not told where there is none."""
        asked = self.health.parts.get(kind, {}) if parts is None else parts
        blank = declared.blank(self.soak.plan, evidence=(self.path,))
        if self.silence is not None and (asked or self.health.problems):
            return replace(blank, reason=self.silence, change=remedies.told((self.path,)))
        if not asked:
            return declared.not_told(self.soak.plan)
        findings = [ask(part) for _, part in sorted(asked.items())]
        values = [f.value for f in findings if f.value is not None]
        worst = (min if declared.direction == "higher" else max)(values, default=None)
        bound = blank.limit.low if declared.direction == "higher" else blank.limit.high
        margin = None
        if worst is not None and isinstance(bound, Decimal):
            margin = worst - bound if declared.direction == "higher" else bound - worst
        return conclude(blank, findings, passed=passed, value=worst, margin=margin)

    def told(self, part: Part, *path: str) -> dict[int, int] | None:
        """Return {reading: figure} where it is told by the first and the last reading and by the planned share of all, else None."""
        found, total = part.series(*path), len(self.health.stamps)
        whole = 0 in found and total - 1 in found and len(found) >= self.soak.plan.g4.coverage_min * total
        return found if whole else None

    def grown(self, figures: Mapping[int, int], *, for_life: bool = True) -> int | None:
        """Return by how much a count grew, None where it went back. One that is not `for_life` may begin anew with a boot of the host."""
        total = 0
        for (n, before), (m, after) in itertools.pairwise(sorted(figures.items())):
            if after >= before:
                total += after - before
            elif for_life or self.health.boot(n) == self.health.boot(m):
                return None
            else:
                total += after
        return total

    def silent(self, part: Part, what: Text) -> Finding:
        """Return the finding of a figure that a part does not tell from beginning to end."""
        return unknown(
            "{s} does not tell {w} from beginning to end ({n} of {m} readings name it)",
            "{s} 未自始至终给出{w}（{m} 次读取中有 {n} 次提到该部件）",
            self.path,
            s=part.name,
            w=what,
            n=len(part.rows),
            m=len(self.health.stamps),
        )

    def went_back(self, part: Part, what: Text) -> Finding:
        """Return the finding of a count that went back: it was reset, or this is another part."""
        text = "{w} of {s} went back: it was reset, or another part answers", "{s} 的{w}出现回退：已被清零或部件已更换"
        return unknown(*text, self.path, s=part.name, w=what)


def readings(soak: Soak, health: Health) -> Readings:
    """Return the readings of a soak with why they cannot be used, if so: broken lines, or a stretch of load without any."""
    if health.problems:
        return Readings(soak, health, health.problems[0].message)
    most = max(_APART_NS, int(soak.plan.scaled_seconds(soak.plan.g4.gap_max.base) * NS))
    longest = max((gap for boot in soak.line.boots for gap in _gaps(health, boot)), default=0)
    if longest <= most:
        return Readings(soak, health, None)
    text = Text("No reading of the parts for {v} s of the load (at most {l} s).", "加载期间有 {v} s 没有部件读数（上限 {l} s）。")
    return Readings(soak, health, text.fill(v=longest // NS, l=most // NS))


def _gaps(health: Health, boot: Boot) -> Iterable[int]:
    """Return the times between two readings of a boot under load (ns); both ends of its load count."""
    stamps = sorted(at for name, at in health.stamps if name == boot.id and at is not None)
    inside = [min(max(at, boot.start_ns), boot.end_ns) for at in stamps]
    edges = [boot.start_ns, *inside, boot.end_ns]
    return [after - before for before, after in itertools.pairwise(edges)]
