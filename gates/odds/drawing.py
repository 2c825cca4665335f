"""Draw what runs would measure: run medians of TTFT and throughputs, as the whole numbers that a judge reads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gates.odds.effects import Effects, Noise
from gates.plan import Plan

_BASE_NS = 10**10  # a TTFT of 10 s; its size decides nothing
_BASE_RATE = 10**9  # 1000 tokens/s in millionths
_MEDIAN_AND_MEAN = math.sqrt(2 / math.pi)  # correlation of the median and the mean of normal values

Series = tuple[Fraction, ...]


@dataclass(frozen=True)
class TierDraw:
    """What one drawn attempt measured at one tier. TTFT p50 in ns, rates in tokens/s, one value a run in the order of the pairs."""

    baseline_ttft: Series
    candidate_ttft: Series
    baseline_rate: Series
    candidate_rate: Series
    frozen_ttft: Fraction  # of G2
    frozen_rate: Fraction
    recompute_rate: Series  # one value a run beside the order
    placebo_rate: Series

    def first(self, pairs: int) -> TierDraw:
        """Return the draw as it stood after so many run pairs."""
        series = (self.baseline_ttft, self.candidate_ttft, self.baseline_rate, self.candidate_rate)
        a, b, c, d = (values[:pairs] for values in series)
        return TierDraw(a, b, c, d, self.frozen_ttft, self.frozen_rate, self.recompute_rate, self.placebo_rate)


Draw = dict[int, TierDraw]


def draws(plan: Plan, effects: Effects, noise: Noise, *, pairs: int, trials: int, seed: int, requests: int = 1) -> Iterator[Draw]:
    """Yield drawn attempts of G3, each with what every tier measured. `requests` multiplies the plan's requests a run.

    The same seed gives the same attempts; with more pairs, or more runs beside them, the first ones stay what they were.
    """
    import numpy as np

    columns: dict[int, list[Any]] = {}
    for tier in plan.workload.tiers:
        n = plan.workload.requests(tier) * requests
        paired = _values(np.random.default_rng([seed, tier, 0]), (pairs, 2, trials), noise, n)  # pair, arm, trial
        before = _values(np.random.default_rng([seed, tier, 1]), (plan.g2.runs, trials), noise, n)  # G2's runs
        beside = _values(np.random.default_rng([seed, tier, 2]), (plan.arms.controls, 2, trials), noise, n)[1]  # recompute and placebo, their rates
        slow = math.log1p(-float(effects.drop[tier]))
        fast = math.log1p(float(effects.gain[tier]))
        shift = np.array([0.0, 1.0]).reshape(1, 2, 1)
        ttft, rate = _whole(_BASE_NS, paired[0] + slow * shift), _whole(_BASE_RATE, paired[1] + fast * shift)
        frozen = [_whole(base, part.mean(axis=0)) for base, part in ((_BASE_NS, before[0]), (_BASE_RATE, before[1]))]
        runs = (ttft, rate, _whole(_BASE_RATE, beside))
        columns[tier] = [*(series.transpose(2, 1, 0).tolist() for series in runs), *(f.tolist() for f in frozen)]
    for i in range(trials):
        yield {tier: _tier(*(column[i] for column in found)) for tier, found in columns.items()}


def _values(rng: Any, shape: tuple[int, ...], noise: Noise, requests: int) -> tuple[Any, Any]:
    """Return log deviations of TTFT p50 and of throughput: a slow run is slow in both, and its requests blur each a little."""
    import numpy as np

    unit = rng.standard_normal((*shape[:-1], 3, shape[-1]))
    run, own, other = (np.take(unit, k, axis=-2) for k in range(3))
    mean = _MEDIAN_AND_MEAN * own + math.sqrt(1 - _MEDIAN_AND_MEAN**2) * other
    return noise.run * run + noise.of_median(requests) * own, -noise.run * run - noise.of_mean(requests) * mean


def _whole(base: int, logs: Any) -> Any:
    import numpy as np

    return np.rint(base * np.exp(logs)).astype(np.int64)


def _tier(ttft: list[list[int]], rate: list[list[int]], beside: list[list[int]], frozen_ttft: int, frozen_rate: int) -> TierDraw:
    old, new, slow, fast, recompute, placebo = (tuple(Fraction(v) for v in arm) for arms in (ttft, rate, beside) for arm in arms)
    return TierDraw(old, new, slow, fast, Fraction(frozen_ttft), Fraction(frozen_rate), recompute, placebo)
