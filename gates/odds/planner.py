"""How many run pairs and requests a wanted chance of a pass takes, and which validity limits fit a noise."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

from gates.model import Verdict
from gates.odds.chances import Chances, chances
from gates.odds.effects import Effects, Noise
from gates.plan import Plan
from gates.rules.decision import PAIRS_FOR_AN_INTERVAL

PAIRS = (2, 4, 6, 8, 10, 12, 16, 20)  # whole ABBA blocks, up to what a plan may hold
TIMES = (1, 2, 4)  # the plan's requests a run, multiplied
SEARCH_TRIALS = 1000
FALSE_ALARMS = 0.01  # share of gates in which a fitting validity limit may alarm by chance alone


@dataclass(frozen=True)
class Need:
    """The cheapest runs that reach the wanted chance. `reached` is False when none does: then these are the most that a plan may hold."""

    pairs: int
    times: int
    reached: bool
    chances: Chances


def with_pairs(plan: Plan, pairs: int, *, rule: str | None = None) -> Plan:
    """Return the plan with another number of run pairs, in ABBA order, and another decision rule if one is named. For planning, never sealed."""
    block = ("baseline", "candidate", "candidate", "baseline")
    order = (block * (pairs // 2 + 1))[: 2 * (pairs - pairs % 2)] + (("baseline", "candidate") if pairs % 2 else ())
    decision = dataclasses.replace(plan.decision, pairs=pairs, rule=rule or plan.decision.rule)
    return dataclasses.replace(plan, decision=decision, arms=dataclasses.replace(plan.arms, order=order))


def needed(plan: Plan, effects: Effects, noise: Noise, wanted: float, *, seed: int | None = None, trials: int = SEARCH_TRIALS) -> Need:
    """Return the runs, with the fewest requests, whose chance of a pass is at least `wanted`; more runs are taken to be never worse."""
    least = 2 if plan.decision.rule == "simple" else PAIRS_FOR_AN_INTERVAL
    choices = [n for n in PAIRS if n >= least]

    def tried(pairs: int, times: int) -> Chances:
        return chances(with_pairs(plan, pairs), effects, noise, trials=trials, seed=seed, requests=times)

    most = tried(choices[-1], TIMES[-1])
    if most.of(Verdict.PASS) < wanted:
        return Need(choices[-1], TIMES[-1], False, most)
    found = [Need(choices[-1], TIMES[-1], True, most)]
    for times in TIMES:
        low, high, best = 0, len(choices) - 1, None
        while low <= high:
            middle = (low + high) // 2
            chance = tried(choices[middle], times)
            if chance.of(Verdict.PASS) >= wanted:
                best, high = Need(choices[middle], times, True, chance), middle - 1
            else:
                low = middle + 1
        found += [best] if best else []
    return min(found, key=lambda need: (need.pairs * need.times, need.pairs))


def fitting_limits(plan: Plan, noise: Noise) -> Iterator[tuple[str, str, Decimal, Decimal]]:
    """Yield (claim, plan field, limit as planned, limit that fits): where chance alone breaches a validity claim in more than 1 of 100 gates.

    Closed forms for normal log ratios, each tier and quantity with its share of the 1 %: a difference of two runs, of means of runs, and the
    chi-square bound of a typical difference of n runs. The fitting limit is rounded up to a whole percent.
    """
    from scipy.special import chdtri, ndtri

    tiers, pairs = plan.workload.tiers, plan.decision.pairs
    run = max(math.hypot(noise.run, noise.of_median(plan.workload.requests(t))) for t in tiers)
    z = float(ndtri(1 - FALSE_ALARMS / len(tiers)))
    two_sided = float(ndtri(1 - FALSE_ALARMS / len(tiers) / 4))
    validity = plan.validity
    rows: list[tuple[str, str, Decimal, float]] = []
    if "placebo" in plan.arms.once:
        rows.append(("placebo", "validity.placebo_gain_max", validity.placebo_gain_max, z * run * math.sqrt(2)))
    if pairs > 1:
        spread = math.sqrt(2 * float(chdtri(pairs - 1, FALSE_ALARMS / len(tiers) / 2)) / (pairs - 1))
        rows.append(("replay", "validity.replay_gain_max", validity.replay_gain_max, z * run * math.sqrt(1 + 1 / (pairs - 1))))
        rows.append(("baselines_agree", "g3.agreement_max", plan.g3.agreement_max, spread * run))
    rows.append(("g2_agreement", "g3.agreement_max", plan.g3.agreement_max, two_sided * run * math.sqrt(1 / pairs + 1 / plan.g2.runs)))
    for claim, field, limit, log in rows:
        fits = Decimal(repr(math.expm1(log))).quantize(Decimal("0.01"), ROUND_UP)
        if fits > limit and plan.leaves_out(claim) is None:
            yield claim, field, limit, fits


def with_fitting_limits(plan: Plan, noise: Noise) -> Plan:
    """Return the plan with the validity limits that fit a noise. For planning, never sealed: limits are the parties' to agree on."""
    wanted: dict[str, Decimal] = {}
    for _, field, _, fits in fitting_limits(plan, noise):
        wanted[field.partition(".")[2]] = max(fits, wanted.get(field.partition(".")[2], fits))
    agreement = wanted.pop("agreement_max", plan.g3.agreement_max)
    validity = dataclasses.replace(plan.validity, **wanted)  # type: ignore[arg-type]  # names of fields that hold a Decimal
    return dataclasses.replace(plan, g3=dataclasses.replace(plan.g3, agreement_max=agreement), validity=validity)


def json_of(need: Need) -> dict[str, Any]:
    """Return a need as data."""
    return {"pairs": need.pairs, "requests_times": need.times, "reached": need.reached, **need.chances.json()}
