"""The throughput gain beside what the measured times allow: a mean over run pairs, whatever their number."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from gates.model import ClaimResult, ClaimStatus, StepKind, StepSpec
from gates.plan import parse_plan
from gates.readers.run_pack import Pack
from gates.rules.across import gain_explained
from gates.rules.claim import Findings, Run
from gates.rules.estimates import TierStats
from gates.text import Text

TIER, MS = 8, 10**6
HOLDS, BREACHED = ClaimStatus.HOLDS, ClaimStatus.BREACHED
STATS = TierStats(TIER, 80, 0, (MS,), Fraction(MS), MS, MS, Fraction(MS), Fraction(1000 * MS), Fraction(TIER), Fraction(100))


def claim(offs: list[Fraction]) -> ClaimResult:
    """Return the claim over run pairs whose gain is so far off what their times allow: +30 % allowed, 1.3 x (1 + off) measured."""
    limits = {"ttft_p50_drop_min": {"tiers": [TIER]}, "throughput_gain_band": {"tiers": [TIER]}}
    plan = parse_plan({"workload": {"tiers": [TIER]}, "g3": limits, "g4": {"tier": TIER}})
    plan = replace(plan, decision=replace(plan.decision, pairs=len(offs)))
    runs = []
    for number, off in enumerate(offs):
        fast = replace(STATS, e2e_mean=STATS.e2e_mean / Fraction(13, 10), output_per_s=STATS.output_per_s * Fraction(13, 10) * (1 + off))
        for arm, stats in (("baseline", STATS), ("candidate", fast)):
            spec = StepSpec(key=f"{arm}-{number}", kind=StepKind.JOB, title=Text("x", "x"), params={"arm": arm, "set": "main"})
            runs.append(Run(spec, Pack(spec.key, "gpu01", f"evidence/{spec.key}/gpu01"), {TIER: stats}))
    return gain_explained(Findings(plan, tuple(runs)))


@pytest.mark.parametrize("n", [1, 2, 8, 20])
@pytest.mark.parametrize("side", [1, -1])
def test_the_limit_itself_holds_and_a_hair_beyond_it_breaks_at_any_number_of_pairs(n: int, side: int) -> None:
    limit, hair = Fraction(3, 100) * side, Fraction(side, 10**15)
    found = [claim([limit] * (n - 1) + [limit + off]) for off in (-hair, Fraction(0), hair)]
    assert [c.status for c in found] == [HOLDS, HOLDS, BREACHED]
    assert [c.value is not None and c.value > Decimal("0.03") for c in found] == [False, False, True]


@pytest.mark.parametrize("n", [2, 8, 20])
def test_pairs_that_are_each_within_the_limit_are_within_it_together(n: int) -> None:
    found = claim([Fraction(24, 1000)] * n)
    assert (found.status, found.value) == (HOLDS, Decimal("0.024"))
    assert "2.40 %" in found.reason.en
    assert claim([Fraction(31, 1000)] * n).status is BREACHED
