"""How often chance alone breaches a claim that compares runs, by closed forms; which limits, or how many more runs, end that."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from gates.odds.effects import Noise
from gates.plan import Plan
from gates.rules.decision import PAIRS_FOR_AN_INTERVAL

FALSE_ALARMS = 0.01  # share of gates in which a validity limit may alarm by chance alone


@dataclass(frozen=True)
class Alarm:
    """One claim: its limit in the plan, the share of sound gates that breach it by chance, and the limit (in whole percent) that ends this."""

    claim: str
    field: str
    limit: Decimal
    share: float
    fits: Decimal


def alarms(plan: Plan, noise: Noise, *, times: int = 1) -> Iterator[Alarm]:
    """Yield the claims that compare runs, as far as the plan tests them. `times` multiplies the plan's requests a run.

    For normal log ratios: a difference of runs, of means of runs, and a typical difference of n runs, which is chi-square. The shares of tiers
    and quantities are added up (Bonferroni), so they are upper bounds. A fitting limit leaves each tier and quantity its part of 1 in 100.
    """
    from scipy.special import chdtrc, chdtri, ndtr, ndtri

    tiers, pairs, validity = len(plan.workload.tiers), plan.decision.pairs, plan.validity
    run = max(math.hypot(noise.run, noise.of_median(plan.workload.requests(t) * times)) for t in plan.workload.tiers)

    def mean(claim: str, field: str, limit: Decimal, log_limit: float, spread: float, sides: int = 1) -> Iterator[Alarm]:
        if plan.leaves_out(claim) is None:
            share = tiers * sides * float(ndtr(-log_limit / spread)) if spread > 0 else 0.0
            log = float(ndtri(1 - FALSE_ALARMS / tiers / sides)) * spread
            yield Alarm(claim, field, limit, min(share, 1.0), _whole_percent(math.expm1(log)))

    if "placebo" in plan.arms.once:
        placebo = validity.placebo_gain_max
        yield from mean("placebo", "validity.placebo_gain_max", placebo, math.log1p(placebo), run * math.sqrt(2 / plan.arms.controls))
    if pairs > 1:
        replay, agreement = validity.replay_gain_max, plan.g3.agreement_max
        drop = -math.log1p(-float(replay)) if replay < 1 else math.inf
        blocks = plan.arms.blocks
        later = 2 / blocks if plan.arms.prompts == "per_block" else 1 + 1 / (pairs - 1)
        yield from mean("replay", "validity.replay_gain_max", replay, drop, run * math.sqrt(later))
        if plan.leaves_out("baselines_agree") is None:
            # What is held against the limit over what was measured, squared: the bound's share where a bound decides, else 1.
            bounded = plan.decision.rule != "simple" and pairs >= PAIRS_FOR_AN_INTERVAL
            shrunk = (pairs - 1) / float(chdtri(pairs - 1, 1 - float(plan.decision.confidence))) if bounded else 1.0
            spread = math.sqrt(2 * shrunk) * run
            share = 2 * tiers * float(chdtrc(pairs - 1, (pairs - 1) * (math.log1p(agreement) / spread) ** 2)) if spread > 0 else 0.0
            log = spread * math.sqrt(float(chdtri(pairs - 1, FALSE_ALARMS / tiers / 2)) / (pairs - 1))
            yield Alarm("baselines_agree", "g3.agreement_max", agreement, min(share, 1.0), _whole_percent(math.expm1(log)))
    agreement = plan.g3.agreement_max
    away = run * math.sqrt(1 / pairs + 1 / plan.g2.runs)
    yield from mean("g2_agreement", "g3.agreement_max", agreement, math.log1p(agreement), away, sides=4)  # above and below, TTFT and throughput


def false_alarms(plan: Plan, noise: Noise) -> tuple[Alarm, ...]:
    """Return the claims that chance alone breaches in more than 1 of 100 gates."""
    return tuple(alarm for alarm in alarms(plan, noise) if alarm.share > FALSE_ALARMS)


def with_fitting_limits(plan: Plan, noise: Noise) -> Plan:
    """Return the plan with the validity limits that fit a noise. For planning, never sealed: limits are the parties' to agree on."""
    wanted: dict[str, Decimal] = {}
    for alarm in false_alarms(plan, noise):
        name = alarm.field.partition(".")[2]
        wanted[name] = max(alarm.fits, wanted.get(name, alarm.fits))
    agreement = wanted.pop("agreement_max", plan.g3.agreement_max)
    validity = dataclasses.replace(plan.validity, **wanted)  # type: ignore[arg-type]  # names of fields that hold a Decimal
    return dataclasses.replace(plan, g3=dataclasses.replace(plan.g3, agreement_max=agreement), validity=validity)


def share_of(claim: str, plan: Plan, noise: Noise, *, times: int = 1) -> float:
    """Return how often chance alone breaches one claim, as a share of gates; 0 where the plan does not test it."""
    return next((alarm.share for alarm in alarms(plan, noise, times=times) if alarm.claim == claim), 0.0)


def fewest_controls(plan: Plan, noise: Noise, *, times: int = 1, most: int = 20) -> int:
    """Return how often recompute and placebo must run at least so that the placebo's limit alarms falsely in no more than 1 of 100 gates."""
    for controls in range(1, most):
        tried = dataclasses.replace(plan, arms=dataclasses.replace(plan.arms, controls=controls))
        if share_of("placebo", tried, noise, times=times) <= FALSE_ALARMS:
            return controls
    return most


def _whole_percent(ratio: float) -> Decimal:
    return Decimal(repr(ratio)).quantize(Decimal("0.01"), ROUND_UP)
