"""How long a gate takes at least, from measured rates, and whether that fits into the calendar. Pure: the caller says what day it is.

The bound is a low one on purpose: what is refused by it cannot fit. Left out are restarts, cooling, warm-up, canaries and people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Any

from gates.plan import Plan
from gates.readers.strict import exact
from gates.text import Text

HOUR, DAY = 3600, 86400
GATE_ORDER = ("G1", "G2", "G3", "G4")


@dataclass(frozen=True)
class Needed:
    """The least seconds of the clock that an attempt takes, and in words what they are made of."""

    seconds: Fraction
    basis: Text


def needed(plan: Plan, gate: str, g2_baseline: Mapping[str, Any] | None) -> Needed | None:
    """Return how long an attempt at a gate takes at least, or None where nothing measured tells (G1, and G2 before its first result).

    A run answers every request of every tier at the output rate that the frozen G2 baseline had there; storing the prefixes of an arm takes
    at least as long again, since computing a prefix takes no less than loading it. G4 lasts as long as the plan says.
    """
    if gate == "G4":
        seconds = Fraction(plan.scaled_seconds(plan.g4.duration.base))
        return Needed(seconds, Text("the plan's duration", "计划时长"))
    run = _run_seconds(plan, g2_baseline) if gate in ("G2", "G3") else None
    if run is None:
        return None
    arms = [*plan.arms.order, *(arm for arm, _ in plan.arms.beside)] if gate == "G3" else ["baseline"] * plan.g2.runs
    stores = len({arm for arm in arms if plan.arms.recovers(arm)})
    if gate == "G3":  # the arms of the order store once a prompt set
        stores += (plan.arms.blocks - 1) * len({arm for arm in plan.arms.order if plan.arms.recovers(arm)})
    basis = Text(
        "{n} runs and {s} store phases of at least {h} h each, by the rates of the G2 baseline",
        "按 G2 基线实测速率，{n} 轮测量与 {s} 次写入每次至少 {h} h",
    ).fill(n=len(arms), s=stores, h=_hours(run))
    return Needed((len(arms) + stores) * run, basis)


def _run_seconds(plan: Plan, g2_baseline: Mapping[str, Any] | None) -> Fraction | None:
    tiers = (g2_baseline or {}).get("tiers")
    total = Fraction(0)
    for tier in plan.workload.tiers:
        row = tiers.get(str(tier)) if isinstance(tiers, Mapping) else None
        rate = exact(row.get("output_tokens_per_s")) if isinstance(row, Mapping) else None
        if rate is None or rate <= 0:
            return None
        total += plan.workload.requests(tier) * plan.workload.output_tokens / Fraction(rate)
    return total


def calendar_end(plan: Plan) -> date | None:
    """Return the first day after the whole calendar, or None when the plan names no start."""
    if not plan.calendar.start:
        return None
    return date.fromisoformat(plan.calendar.start) + timedelta(weeks=sum(plan.calendar.weeks[gate] for gate in GATE_ORDER))


def refusal(plan: Plan, gate: str, g2_baseline: Mapping[str, Any] | None, at: datetime) -> Text | None:
    """Return why an attempt that starts now cannot end within the calendar, with the numbers; None when it can or when nobody can tell."""
    found, end = needed(plan, gate, g2_baseline), calendar_end(plan)
    if found is None or end is None:
        return None
    left = Fraction(int((datetime.combine(end, time(), tzinfo=at.tzinfo) - at).total_seconds()))
    if found.seconds <= left:
        return None
    return Text(
        "{gate} takes at least {n} h ({b}), and the calendar, which ends before {d}, has {l} h left. Agree on a later one in a new plan revision.",
        "{gate} 至少需要 {n} h（{b}），而日程于 {d} 之前结束，仅剩 {l} h。请以新的计划修订版约定延后日程。",
    ).fill(gate=gate, n=_hours(found.seconds), b=found.basis, d=end.isoformat(), l=_hours(max(left, Fraction(0))))


def shown(plan: Plan, gate: str, g2_baseline: Mapping[str, Any] | None) -> Text | None:
    """Return the sentence for people who are about to start the gate; None where nothing is known."""
    found = needed(plan, gate, g2_baseline)
    if found is None:
        return None
    return Text("Takes at least {n} h: {b}.", "至少需要 {n} h：{b}。").fill(n=_hours(found.seconds), b=found.basis)


def _hours(seconds: Fraction) -> str:
    """Return hours with three significant digits or so: a demo's seconds must not read as 0."""
    hours = float(seconds / HOUR)
    return f"{hours:.1f}" if hours >= 1 else f"{hours:.3f}"
