"""What the requests within runs tell about the scatter of a median: a diagnostic beside the interval over run pairs, which decides nothing.

A bootstrap of the requests treats them as independent and every run as the same, so it is too narrow (docs/false-decisions.md): its place is
beside the interval, where a large difference says that runs differ by more than their requests do. Its variance needs no random numbers: for a
median it has a closed form (J. S. Maritz and R. G. Jarrett, "A note on estimating the variance of the sample median", JASA 73, 1978).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from statistics import NormalDist

from gates.model import Interval
from gates.rules.decision import Effect

_STEPS = 8  # of the integration within the share of one order statistic


@lru_cache(maxsize=256)
def median_weights(n: int) -> tuple[float, ...]:
    """Return the chance of each order statistic of n to be the median of a resample: the Beta((n+1)/2, (n+1)/2) law over n equal cells."""
    a = (n + 1) / 2
    log_beta = 2 * math.lgamma(a) - math.lgamma(2 * a)
    points = [(i + 0.5) / (n * _STEPS) for i in range(n * _STEPS)]
    density = [math.exp((a - 1) * math.log(t * (1 - t)) - log_beta) for t in points]
    raw = [math.fsum(density[i * _STEPS : (i + 1) * _STEPS]) for i in range(n)]
    total = math.fsum(raw)
    return tuple(w / total for w in raw)


def median_variance(values: Sequence[int]) -> float:
    """Return the variance of the log of the median of sorted positive values, as a bootstrap of them would find it."""
    weights, logs = median_weights(len(values)), [math.log(v) for v in values]
    mean = math.fsum(w * x for w, x in zip(weights, logs, strict=True))
    return math.fsum(w * (x - mean) ** 2 for w, x in zip(weights, logs, strict=True))


def within_run(effect: Effect, runs: Sequence[Sequence[int]], confidence: Decimal) -> Interval | None:
    """Return the one-sided bounds of an effect that the requests within the runs alone give; None where a run has none, or there is one pair.

    `runs`: the sorted values of every run of the effect's pairs, baseline and candidate alike.
    """
    if len(effect.pairs) < 2 or not all(runs) or any(values[0] <= 0 for values in runs):
        return None
    error = math.sqrt(math.fsum(median_variance(values) for values in runs)) / len(effect.pairs)
    low, high = effect.between(NormalDist().inv_cdf(float(confidence)) * error)
    return Interval(low=low, high=high, confidence=confidence, n=sum(len(values) for values in runs))
