"""What G3's limits make of the measured run pairs, without words: what the checks print, and what the planner asks thousands of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from gates.model import Because, ClaimStatus, Verdict
from gates.plan import Plan
from gates.rules.decision import Effect, above, decide, flips, interval

# What an estimate above the band asks for as evidence when the plan says `audit` (DESIGN 4.7): claim and arm.
AUDITS = (("replay", "candidate"), ("placebo", "placebo"), ("g2_agreement", "baseline"))


class Above(StrEnum):
    """Why an estimate above the band is worth what it is."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    BREACHED = "breached"
    MISSING = "missing"
    REACHES = "reaches"  # its interval reaches into the band
    CLEAN = "clean"


@dataclass(frozen=True)
class Decided:
    """A verdict, why where it is conditional, and what was said above the band."""

    verdict: Verdict
    because: Because | None = None
    above: Above | None = None


def of_drop(plan: Plan, effect: Effect, baselines: Sequence[Fraction]) -> Decided:
    """Return what the limit makes of a TTFT p50 drop; `baselines` are the runs that alone must not flip it (DESIGN 4.8)."""
    limit = plan.g3.ttft_p50_drop_min.limit
    return _fragile(plan, Decided(*decide(effect, limit, plan.decision)), effect, baselines, (limit,))


def of_gain(plan: Plan, effect: Effect, baselines: Sequence[Fraction], audits: Sequence[ClaimStatus | None]) -> Decided:
    """Return what the band makes of a throughput gain; `audits` are the states of the claims of AUDITS, None for one that was not examined."""
    band, found = plan.g3.throughput_gain_band, Decided(*decide(effect, plan.g3.throughput_gain_band.low, plan.decision))
    if above(effect, band.high, plan.decision):
        return _above(plan, effect, audits, _fragile(plan, found, effect, baselines, (band.low,)))
    ends = (band.low,) if band.above == "accept" else (band.low, band.high)  # where the plan accepts it, beyond the top is no other answer
    return _fragile(plan, found, effect, baselines, ends)


def _above(plan: Plan, effect: Effect, audits: Sequence[ClaimStatus | None], lower: Decided) -> Decided:
    """Return what an estimate above the band is worth; `lower` is what the low end makes of it: no more than that where it may pass."""
    band = plan.g3.throughput_gain_band
    if band.above == "accept":
        return replace(lower, above=Above.ACCEPTED)
    if band.above == "fail":
        return Decided(Verdict.FAIL, above=Above.REFUSED)
    if ClaimStatus.BREACHED in audits:
        return Decided(Verdict.INVALID, above=Above.BREACHED)
    if any(status is not ClaimStatus.HOLDS for status in audits):
        return Decided(Verdict.INCONCLUSIVE, above=Above.MISSING)
    low = interval(effect, plan.decision).low
    if low is not None and low <= band.high:
        return replace(lower, above=Above.REACHES)
    return Decided(Verdict.CONDITIONAL, Because.ABOVE_BAND, Above.CLEAN)


def _fragile(plan: Plan, found: Decided, effect: Effect, baselines: Sequence[Fraction], limits: Sequence[Decimal]) -> Decided:
    if found.verdict is Verdict.PASS and len(baselines) > 1 and flips(effect, baselines, limits, plan.decision):
        return Decided(Verdict.CONDITIONAL, Because.FRAGILE)
    return found
