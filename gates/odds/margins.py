"""What to say before sealing: limits that equal what is expected, thin margins, and expectations that contradict each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from gates.odds.effects import Effects, Noise, allowed_gain
from gates.plan import Plan
from gates.rules.decision import Effect, above, at_least
from gates.rules.estimates import percent
from gates.text import Text

_THIN = 1.645  # standard errors: a margin below them is missed by chance in more than 5 of 100 gates

_EQUAL = Text(
    "c{t}: the expected {n} of {v} equals the limit of {l}: whether it is met is a coin toss.",
    "c{t}：{n} {v} 恰等于限值 {l}：能否达标近乎抛硬币。",
)
_NEAR = Text(
    "c{t}: the expected {n} of {v} is {d} points from the limit of {l}, the estimate itself varies by {e} (one standard error): a thin margin.",
    "c{t}：{n} {v} 距限值 {l} 仅 {d} 个百分点，估计值自身的标准误为 {e} 个百分点：余量过薄。",
)
_MISSED = Text("c{t}: the expected {n} of {v} does not meet the limit of {l}.", "c{t}：{n} {v} 达不到限值 {l}。")
_ABOVE = Text("c{t}: the expected {n} of {v} lies above the band, which ends at {l}.", "c{t}：{n} {v} 高于区间上限 {l}。")
_TOO_MUCH = Text(
    "c{t}: a drop of {d} can bring at most +{m} throughput when the decode time stays; {v} is expected.",
    "c{t}：解码时间不变时，{d} 的降幅最多带来 +{m} 的吞吐提升，而预期为 {v}。",
)
_DROP, _GAIN = Text("TTFT p50 drop", "预期 TTFT p50 降幅"), Text("throughput gain", "预期吞吐提升")


def warnings(plan: Plan, effects: Effects, noise: Noise) -> tuple[Text, ...]:
    """Return what both parties should know before they seal the plan; nothing when every margin is comfortable."""
    return (*_drops(plan, effects, noise), *_gains(plan, effects, noise), *_contradictions(plan, effects))


def standard_error(plan: Plan, noise: Noise, tier: int, *, drop: bool) -> float:
    """Return the standard error of an effect at one tier, on the log scale: that of a pair of runs over the root of the number of pairs."""
    n = plan.workload.requests(tier)
    own = noise.of_median(n) if drop else noise.of_mean(n)
    return math.sqrt(2 * (noise.run**2 + own**2) / plan.decision.pairs)


def _drops(plan: Plan, effects: Effects, noise: Noise) -> Iterator[Text]:
    limit = plan.g3.ttft_p50_drop_min
    for tier in limit.tiers:
        value = effects.drop[tier]
        effect = Effect(((Fraction(1), 1 - Fraction(value)),), drop=True)
        error = standard_error(plan, noise, tier, drop=True)
        words = {"t": tier, "n": _DROP, "v": percent(value, limit.limit), "l": percent(limit.limit)}
        if value == limit.limit:
            yield _EQUAL.fill(**words)
        elif not at_least(effect, limit.limit, plan.decision):
            yield _MISSED.fill(**words)
        elif math.log((1 - float(limit.limit)) / (1 - float(value))) < _THIN * error:
            yield _near(words, value - limit.limit, error * (1 - float(value)))


def _gains(plan: Plan, effects: Effects, noise: Noise) -> Iterator[Text]:
    band = plan.g3.throughput_gain_band
    for tier in band.tiers:
        value = effects.gain[tier]
        effect = Effect(((Fraction(1), 1 + Fraction(value)),), drop=False)
        error = standard_error(plan, noise, tier, drop=False)
        words = {"t": tier, "n": _GAIN, "v": percent(value, band.low, band.high)}
        if value in (band.low, band.high):
            yield _EQUAL.fill(**words, l=percent(value))
        elif not at_least(effect, band.low, plan.decision):
            yield _MISSED.fill(**words, l=percent(band.low))
        elif above(effect, band.high, plan.decision):
            if band.above != "accept":
                yield _ABOVE.fill(**words, l=percent(band.high))
        else:
            for limit in (band.low,) if band.above == "accept" else (band.low, band.high):
                if abs(math.log((1 + float(value)) / (1 + float(limit)))) < _THIN * error:
                    yield _near({**words, "l": percent(limit)}, abs(value - limit), error * (1 + float(value)))


def _near(words: dict[str, object], distance: Decimal, error: float) -> Text:
    return _NEAR.fill(**words, d=f"{distance * 100:.2f}", e=f"{error * 100:.2f}")


def _contradictions(plan: Plan, effects: Effects) -> Iterator[Text]:
    for tier in plan.workload.tiers:
        most, value = allowed_gain(effects.drop[tier]), effects.gain[tier]
        if value > most:
            yield _TOO_MUCH.fill(t=tier, d=percent(effects.drop[tier]), m=percent(most, value), v="+" + percent(value, most))
