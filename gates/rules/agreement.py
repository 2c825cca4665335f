"""Do runs agree: the questions behind the claims that compare runs, without words. The planner asks the same ones of runs that it draws.

More runs must never make agreement less likely when the site is as steady as before. The largest difference among n runs grows with n (at a
run-to-run variation of 2 %: two runs differ by more than 5 % in 8 % of cases, the extremes of eight in 67 %), so agreement is a property of
a pair: the root mean square difference over all pairs of runs. For two runs that is the difference itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

from gates.rules.decision import Effect
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


def agree(values: Sequence[Fraction], limit: Decimal) -> bool:
    """Return whether the typical difference of two runs is at most the limit; exactly so for two runs."""
    if len(values) == 2:
        return max(values) <= (1 + Fraction(limit)) * min(values)
    return difference(values) <= limit


def from_frozen(frozen: Fraction, values: Sequence[Fraction]) -> Effect:
    """Return the geometric mean of runs over a frozen value, as a gain."""
    return Effect(tuple((frozen, v) for v in values), drop=False)


def near(effect: Effect, limit: Decimal) -> bool:
    """Return whether an effect is within the limit on either side, exactly."""
    return effect.reaches(-limit) and not effect.exceeds(limit)


def replayed(first: Fraction, later: Sequence[Fraction]) -> Effect:
    """Return how much lower the later runs' TTFT p50 is than the first one's (geometric mean of the later ones), as a drop."""
    return Effect(tuple((first, v) for v in later), drop=True)
