"""Was one stretch of a soak worse than the rest of it: exact sizes, and tests that tell a change of level from noise.

A change that ends is still a change: every stretch of windows is held against all windows outside it, not only what follows a moment against
what went before. What is worse at the very end, for fewer windows than the plan asks for, is no proof and no pass either (`late_fall`).
How often noise alone is taken for a change stands in docs/false-decisions.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from gates.rules.trends import Exact, as_whole, middle_of

MOST_EDGES = 144  # a stretch of a longer series begins and ends at one of so many windows, evenly spaced
_SIGMA = 1.4826  # standard deviations of a normal law in one median absolute deviation
_INFLATED = math.pi / 2 * (1 + 0.5) / (1 - 0.5)  # variance of a median of normal values over that of one, at an autocorrelation of 0.5 (AR 1)


@dataclass(frozen=True)
class Stretch:
    """Windows that are worse than all others: by which share (adverse is positive, exact), the first of them, the one behind the last, and p."""

    size: Fraction
    at: int
    end: int
    p: float  # one-sided; of a stretch that may lie anywhere, times the number of stretches that were tried


def worst_stretch(values: Sequence[Exact], *, upwards: bool, least: int, p_max: float, over: Exact) -> Stretch | None:
    """Return where a series got worse, for a while or for good, beyond what noise explains, or None.

    Of every stretch with at least `least` windows in it and outside it, but for those at the very beginning (`bad_start`): the size is the
    ratio of its median to that of all windows outside, or to that of the windows before it where this is less, less one. It must stand a
    one-sided rank-sum test (Mann-Whitney, normal approximation), and by the spread of the windows outside and an autocorrelation of 0.5 the
    difference of the medians must be as rare as `p_max` says: over all that are tried (Bonferroni), but for those that last to the end, of
    which each is tried for itself. Of those larger than `over` the one that ranks highest is told, else the largest.
    Making a window of the found stretch worse makes its size no less and its p no greater.
    """
    return _worst(values, upwards=upwards, least=least, p_max=p_max, over=over, start=False)


def bad_start(values: Sequence[Exact], *, upwards: bool, least: int, p_max: float, over: Exact) -> Stretch | None:
    """Return the stretch from the first window on that was worse than all that followed, as `worst_stretch` does, or None."""
    return _worst(values, upwards=upwards, least=least, p_max=p_max, over=over, start=True)


def late_fall(values: Sequence[Exact], *, upwards: bool, least: int, p_max: float, over: Exact) -> Stretch | None:
    """Return the worst of the last windows, fewer than `least` of them, where they stand out from all that went before, or None.

    Too few for a rank test: their median must lie so far from that of all windows before that the normal law, with the spread of those (median
    absolute deviation), has it as rare as `p_max` allows in as many tries as there are windows. Nothing up to `over` is told.
    """
    whole, _ = as_whole(values)
    worst: Stretch | None = None
    for many in range(1, min(least, len(whole) - least + 1)):
        before, last = whole[:-many], middle_of(whole[-many:])
        middle = middle_of(before)
        size = _worse(last, middle, upwards=upwards)
        if size <= over or (worst is not None and size <= worst.size):
            continue
        spread = _SIGMA * float(middle_of([abs(v - middle) for v in before]))
        p = _upper(abs(float(last - middle)) / spread) * len(whole) if spread else 0.0
        if p <= p_max:
            worst = Stretch(size, len(whole) - many, len(whole), p)
    return worst


def _worst(values: Sequence[Exact], *, upwards: bool, least: int, p_max: float, over: Exact, start: bool) -> Stretch | None:
    whole, _ = as_whole(values)
    worst: tuple[bool, float, Stretch] | None = None
    places = list(_places(len(whole), least))
    for low, high, z in _ranked([v if upwards else -v for v in whole], places, p_max):
        if start is not (low == 0):
            continue
        inside, outside = whole[low:high], whole[:low] + whole[high:]
        level = middle_of(inside)
        size = _worse(level, middle_of(outside), upwards=upwards)
        if size > 0 and not start:
            size = min(size, _worse(level, middle_of(whole[:low]), upwards=upwards))
        key = (size > over, z if size > over else float(size))
        if size <= 0 or (worst is not None and key <= worst[:2]):
            continue
        tries = 1 if high == len(whole) else len(places)
        p = max(_upper(z), _chance(inside, outside) * tries)
        if p <= p_max:
            worst = (*key, Stretch(size, low, high, p))
    return None if worst is None else worst[2]


def _worse(inside: Fraction, outside: Fraction, *, upwards: bool) -> Fraction:
    """Return by which share a level is worse than another; values are positive."""
    return (inside / outside if upwards else outside / inside) - 1


def _upper(z: float) -> float:
    """Return the upper tail of the normal law; accurate where 1 - cdf is lost in rounding."""
    return math.erfc(z / math.sqrt(2)) / 2


def _chance(inside: Sequence[int], outside: Sequence[int]) -> float:
    """Return how likely two levels lie so far apart by chance: of windows that scatter as those outside do, and go on as they went.

    The spread is that of the windows outside alone: one inside that gets worse must not excuse the others.
    """
    level = middle_of(outside)
    spread = _SIGMA * float(middle_of([abs(v - level) for v in outside]))
    error = spread * math.sqrt(_INFLATED * (1 / len(inside) + 1 / len(outside)))
    return _upper(abs(float(middle_of(inside) - level)) / error) if error else 0.0


def _places(windows: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield (first, behind the last) of every stretch that has at least `least` windows in it and outside it."""
    edges = [*range(0, windows, max(1, -(-windows // MOST_EDGES))), windows]
    for n, low in enumerate(edges):
        for high in edges[n + 1 :]:
            if high - low >= least and windows - (high - low) >= least:
                yield low, high


def _ranked(values: Sequence[int], places: Sequence[tuple[int, int]], p_max: float) -> Iterator[tuple[int, int, float]]:
    """Yield (first, behind the last, standard deviations above chance) of the stretches whose values rank higher than those outside.

    Ranks are those among all windows, so that the wins of any stretch over the rest follow from a sum of them; ties count half.
    """
    n, ordered = len(values), sorted(values)
    sums = [0.0, *accumulate((bisect_left(ordered, v) + bisect_right(ordered, v) + 1) / 2 for v in values)]
    for low, high in places:
        m = high - low
        wins = sums[high] - sums[low] - m * (m + 1) / 2
        z = (wins - m * (n - m) / 2 - 0.5) / math.sqrt(m * (n - m) * (n + 1) / 12)
        if _upper(z) <= p_max:
            yield low, high, z
