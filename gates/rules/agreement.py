"""Do runs agree: the questions behind the claims that compare runs, without words. The planner asks the same ones of runs that it draws.

More runs must never make agreement less likely when the site is as steady as before. The largest difference among n runs grows with n (at a
run-to-run variation of 2 %: two runs differ by more than 5 % in 8 % of cases, the extremes of eight in 67 %), so agreement is a property of
a pair: the root mean square difference over all pairs of runs. For two runs that is the difference itself.

Where a plan decides by intervals, and there are enough runs to tell how sure that figure is, they disagree only where its lower bound is above
the limit (ADR 8): at a run-to-run variation of 3 % two runs truly differ by 4.4 %, and an estimate that near to 5 % would alarm every other time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

from gates.plan_model import Decision
from gates.rules.decision import PAIRS_FOR_AN_INTERVAL, Effect
from gates.rules.estimates import to_decimal


def difference(values: Sequence[Fraction], *limits: Decimal) -> Decimal:
    """Return by how much two of the runs typically differ, as larger over smaller less one: root mean square over all pairs, on the log scale.

    With two runs it is their difference, printed on that side of the limits where it lies; else it has 12 decimals. Raises ValueError for fewer.
    """
    if len(values) < 2:
        raise ValueError("one run has nothing to differ from")
    if len(values) == 2:
        return Effect(((min(values), max(values)),), drop=False).value(*limits)
    logs = [math.log(v) for v in values]
    squares = [(a - b) ** 2 for a, b in combinations(logs, 2)]
    return to_decimal(Fraction(math.expm1(math.sqrt(math.fsum(squares) / len(squares)))), 12)


def is_bounded(values: Sequence[Fraction], decision: Decision) -> bool:
    """Return whether a bound decides about so many runs and not their estimate: under interval and guarded, from four runs on."""
    return decision.rule != "simple" and len(values) >= PAIRS_FOR_AN_INTERVAL


def least_difference(values: Sequence[Fraction], confidence: Decimal) -> Decimal:
    """Return the one-sided lower bound of the typical difference of two runs, as larger over smaller less one, with 12 decimals.

    The mean square over all pairs is twice the sample variance s^2 of the logs; (n - 1) s^2 over the true variance is chi-square with n - 1
    degrees of freedom where the logs are normal. Raises ValueError for fewer than two runs.
    """
    from scipy.special import chdtri

    degrees, typical = len(values) - 1, math.log1p(difference(values))
    return to_decimal(Fraction(math.expm1(typical * math.sqrt(degrees / float(chdtri(degrees, 1 - float(confidence)))))), 12)


def agree(values: Sequence[Fraction], limit: Decimal, decision: Decision) -> bool:
    """Return whether the typical difference of two runs is at most the limit: exactly so for two runs, by its lower bound where one decides."""
    if is_bounded(values, decision):
        return least_difference(values, decision.confidence) <= limit
    if len(values) == 2:
        return max(values) <= (1 + Fraction(limit)) * min(values)
    return difference(values) <= limit


def from_frozen(frozen: Fraction, values: Sequence[Fraction]) -> Effect:
    """Return the geometric mean of runs over a frozen value, as a gain."""
    return Effect(tuple((frozen, v) for v in values), drop=False)


def unexplained(gains: Sequence[tuple[Fraction, Fraction]]) -> Effect:
    """Return how much larger the gain is than what the measured times allow, each pair (allowed, measured) of ratios: their geometric mean."""
    return Effect(tuple(gains), drop=False)


def near(effect: Effect, limit: Decimal) -> bool:
    """Return whether an effect is within the limit on either side, exactly."""
    return effect.reaches(-limit) and not effect.exceeds(limit)


def replayed(sets: Sequence[Sequence[Fraction]]) -> Effect:
    """Return how much lower TTFT p50 is in the later runs over a prompt set than in the first one, as a drop: geometric mean over all of them.

    `sets`: the runs of each prompt set in their order, two or more. Over several sets the noise of the first runs averages out as well.
    """
    return Effect(tuple((first, v) for first, *later in sets for v in later), drop=True)
