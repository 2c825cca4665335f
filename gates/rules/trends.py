"""Steady, drifting, leaking: the statistics of a series over time. Pure rules; limits come from the plan.

A gap in a series is a gap: positions are times, nothing is filled in, and nothing is carried over it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

MOST_POINTS = 400  # of a slope: all pairs of them are compared
FEWEST_POINTS = 8
Exact = Fraction | int  # a value of a series: whole numbers and fractions, so that a limit is met or missed exactly


def middle_of(values: Sequence[Exact]) -> Fraction:
    """Return the exact median of a series that is not empty."""
    ordered = sorted(values)
    return (Fraction(ordered[(len(ordered) - 1) // 2]) + Fraction(ordered[len(ordered) // 2])) / 2


def thin(points: Sequence[tuple[Exact, Exact]]) -> Sequence[tuple[Exact, Exact]]:
    """Return at most MOST_POINTS of a series, evenly spaced, both ends kept."""
    if len(points) <= MOST_POINTS:
        return points
    last = len(points) - 1
    return [points[round(i * last / (MOST_POINTS - 1))] for i in range(MOST_POINTS)]


def theil_sen(points: Sequence[tuple[Exact, Exact]], confidence: float) -> tuple[Fraction, Fraction] | None:
    """Return (slope, its one-sided lower bound), both exact: the median of all pairwise slopes, and Sen's bound from Kendall's variance."""
    rows = thin(points)
    n = len(rows)
    if n < FEWEST_POINTS:
        return None
    slopes = _Slopes(rows)
    count = len(slopes)
    if not count:
        return None
    reach = NormalDist().inv_cdf(confidence) * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    lower = max(0, math.floor((count - reach) / 2))
    return (slopes.nth((count - 1) // 2) + slopes.nth(count // 2)) / 2, slopes.nth(min(lower, count - 1))


class _Slopes:
    """The slopes of all pairs of points, by rank. Floats put them in order; those too near to each other to tell are compared exactly."""

    def __init__(self, rows: Sequence[tuple[Exact, Exact]]) -> None:
        import numpy as np  # 80,000 slopes of 400 points; only who judges a trend pays for it

        (x_whole, self._x_unit), (y_whole, self._y_unit) = as_whole([row[0] for row in rows]), as_whole([row[1] for row in rows])
        self._x, self._y = (np.array(v, dtype=np.int64 if max(map(abs, v)) < 2**61 else object) for v in (x_whole, y_whole))
        x, y = self._x.astype(float), self._y.astype(float)
        first, second = np.triu_indices(len(rows), 1)
        run = x[second] - x[first]
        self._first, self._second, run = first[run > 0], second[run > 0], run[run > 0]
        slope = (y[self._second] - y[self._first]) / run
        # More than what the roundings of the values, the differences and the ratio (2^-53 each) can amount to.
        doubt = 2.0**-48 * (np.abs(slope) + (np.abs(y).max() + np.abs(slope) * np.abs(x).max()) / run)
        self._low, self._high = slope - doubt, slope + doubt
        self._lows, self._highs = np.sort(self._low), np.sort(self._high)

    def __len__(self) -> int:
        return len(self._low)

    def nth(self, rank: int) -> Fraction:
        """Return the slope of a rank, 0 the lowest: no slope that is certain to lie below or above it takes part."""
        below = self._high < self._lows[rank]
        near = (~below & (self._low <= self._highs[rank])).nonzero()[0]
        first, second = self._first[near], self._second[near]
        rises, runs = self._y[second] - self._y[first], self._x[second] - self._x[first]
        moves = rises != 0
        seen = Counter(zip(rises[moves].tolist(), runs[moves].tolist(), strict=True))
        if len(near) > int(moves.sum()):
            seen[0, 1] = len(near) - int(moves.sum())
        left = rank - int(below.sum())
        for slope, times in sorted((Fraction(rise, run), times) for (rise, run), times in seen.items()):
            if left < times:
                return slope * self._y_unit / self._x_unit
            left -= times
        raise AssertionError("a slope of that rank lies among those near it")


def as_whole(values: Sequence[Exact]) -> tuple[list[int], Fraction]:
    """Return values as whole numbers of one unit, and that unit."""
    fractions = [Fraction(v) for v in values]
    parts = math.lcm(*(v.denominator for v in fractions))
    return [int(v * parts) for v in fractions], Fraction(1, parts)


@dataclass(frozen=True)
class Steady:
    """The first stretch of rounds that is steady, and how much it moved: both as shares of its mean."""

    at: int  # index of the last round of the stretch
    spread: Fraction  # largest less smallest value
    slope: Fraction  # of the least-squares line over the stretch, from its first round to its last, without sign


def steady_state(values: Sequence[Fraction | None], *, rounds: int, within: int, spread_max: Fraction, slope_max: Fraction) -> Steady | None:
    """Return the first steady stretch of `rounds` values in a row, among the first `within`, or None (SNIA SSS PTS; both limits inclusive).

    A value that is missing (None) breaks the row. Exact: a spread of exactly the limit is steady.
    """
    for last in range(rounds - 1, min(len(values), within)):
        found = spread_and_slope(values[last - rounds + 1 : last + 1])
        if found is not None and found[0] <= spread_max and found[1] <= slope_max:
            return Steady(last, *found)
    return None


def spread_and_slope(values: Sequence[Fraction | None]) -> tuple[Fraction, Fraction] | None:
    """Return range and least-squares excursion of a stretch as shares of its mean, or None when a value is missing or the mean is not positive."""
    known = [v for v in values if v is not None]
    n = len(known)
    if n < 2 or n < len(values) or sum(known) <= 0:
        return None
    mean, middle = sum(known, Fraction(0)) / n, Fraction(n - 1, 2)
    slope = sum(((i - middle) * (v - mean) for i, v in enumerate(known)), Fraction(0)) / sum(((i - middle) ** 2 for i in range(n)), Fraction(0))
    return (max(known) - min(known)) / mean, abs(slope) * (n - 1) / mean


@dataclass(frozen=True)
class Burn:
    """The fastest use of an error budget in a window: its share of the budget of the whole time, where it ends, and its counts."""

    share: Fraction
    at: int  # index of the last bin of the window
    failed: int
    requests: int


def worst_burn(requests: Sequence[int], failed: Sequence[int], *, bins: int, short: int, budget: Fraction, fewest: int) -> Burn | None:
    """Return the window of `bins` bins in a row that uses the largest share of an error budget, or None where no window counts.

    `budget` is the number of failures that the whole time may have. A window counts only when its last `short` bins burn at least as fast:
    an error that is long over is no burn (multi-window burn rate, SRE workbook), and only with `fewest` failures: one is chance.
    """
    if budget <= 0 or not len(requests):
        return None
    worst: Burn | None = None
    for last in range(len(requests)):
        low, near = max(0, last - bins + 1), max(0, last - short + 1)
        bad, all_ = sum(failed[low : last + 1]), sum(requests[low : last + 1])
        bad_near, all_near = sum(failed[near : last + 1]), sum(requests[near : last + 1])
        if bad < fewest or not all_near or bad_near * all_ < bad * all_near:
            continue
        share = Fraction(bad) / budget
        if worst is None or share > worst.share:
            worst = Burn(share, last, bad, all_)
    return worst
