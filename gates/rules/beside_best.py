"""Was any stretch of a soak, however short, worse than the best that the same soak kept up: what `gates.rules.levels` cannot see.

A stretch that is held against all windows outside it hides behind others that are bad too, and one with fewer windows than the plan asks for is no
level. So every stretch is also held against every reference by itself: the windows of the two, and no others, decide. What gets worse outside a
reference therefore never takes back what it proved: as long as one good stretch stands, no window can be made worse to a pass.

No rule within a soak goes further: one in which nothing ever was better has no better level to be held against, and may be at its level from
beginning to end. Windows are values of an autoregressive series (0.5 from one to the next), as docs/false-decisions.md has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from gates.rules.levels import MOST_EDGES, Stretch
from gates.rules.trends import Exact, as_whole, middle_of

RHO = 0.5
FLOOR = 0.01  # of its level: no site is known to be steadier from hour to hour, so windows that happen to be alike promise nothing


@dataclass(frozen=True)
class Beside(Stretch):
    """Windows that are worse than a reference, with the first of its windows and the one behind its last; p is over all pairs that were tried."""

    reference_at: int
    reference_end: int


def beside_best(values: Sequence[Exact], *, upwards: bool, least: int, p_max: float, over: Exact, first: int = 0) -> Beside | None:
    """Return the stretch that stands out most from a reference, worse by more than `over` and beyond what noise explains, or None.

    Stretches have one window or more, references at least `least`; they do not overlap. The difference of the two medians must be as rare as
    `p_max` allows over all pairs that are tried (Bonferroni), under Student's law with the scatter of the reference alone, which is never taken
    for less than FLOOR of its level. Values are positive. Nothing before the window `first` is looked at.
    """
    whole, _ = as_whole(values)
    stretches, references = ([(low + first, high + first) for low, high in find(len(whole) - first, least)] for find in (_stretches, _references))
    if not stretches or not references:
        return None
    most = _screened(whole, stretches, references, upwards=upwards, p_max=p_max, over=float(over))
    for _, ref, low, high, p in sorted(most, reverse=True):
        one, other = middle_of(whole[low:high]), middle_of(whole[ref[0] : ref[1]])
        size = (one / other if upwards else other / one) - 1
        if size > over:
            return Beside(size, low, high, p, *ref)
    return None


def _screened(
    whole: Sequence[int], stretches: Sequence[tuple[int, int]], references: Sequence[tuple[int, int]], *, upwards: bool, p_max: float, over: float
) -> list[tuple[float, tuple[int, int], int, int, float]]:
    """Return, of each reference, the stretch that is furthest beyond noise: (times what noise allows, reference, first, behind the last, p)."""
    import numpy as np

    scale = max(whole)
    series = np.array([value / scale for value in whole])
    lows, highs = (np.array(column) for column in zip(*stretches, strict=True))
    levels = _medians(series, stretches)
    widths = np.array([_variance(high - low) for low, high in stretches])
    tries = len(stretches) * len(references)
    out = []
    for level, (first, behind) in zip(_medians(series, references).tolist(), references, strict=True):
        sizes = levels / level - 1 if upwards else level / levels - 1
        asked = (sizes > over * (1 - 1e-9)) & ((highs <= first) | (lows >= behind))
        if not asked.any():
            continue
        from scipy.special import stdtr, stdtrit  # costs a quarter of a second to import; most soaks need none of it

        count = behind - first
        freedom, spread = _freedom(count), float(series[first:behind].std(ddof=1)) / _seen(count)
        # Of what is scattered by FLOOR alone the law is known, so it is the normal one (so many degrees of freedom as make no difference).
        needed = max(-float(stdtrit(freedom, p_max / tries)) * spread, -float(stdtrit(1e9, p_max / tries)) * FLOOR * level)
        apart = np.abs(levels - level) / np.sqrt(widths + _variance(count))
        asked &= apart > needed
        if asked.any():
            n = int(np.argmax(np.where(asked, apart, -1.0)))
            p = max(float(stdtr(1e9, -apart[n] / (FLOOR * level))), float(stdtr(freedom, -apart[n] / spread)) if spread else 0.0) * tries
            out.append((float(apart[n] / needed), (first, behind), int(lows[n]), int(highs[n]), p))
    return out


def _medians(series: Any, places: Sequence[tuple[int, int]]) -> Any:
    """Return the median of the series (an array) in each of these places, which stand ordered by their length."""
    import numpy as np

    parts = []
    for length, group in groupby(places, key=lambda place: place[1] - place[0]):
        parts.append(np.median(np.lib.stride_tricks.sliding_window_view(series, length)[[low for low, _ in group]], axis=1))
    return np.concatenate(parts)


def _lengths(least: int, most: int) -> Iterator[int]:
    """Yield lengths from `least` on, each by a half or a third longer than the one before: a stretch of any length holds two thirds of itself."""
    length = least
    while length <= most:
        yield length
        length = length + 1 if length < 3 else length * 4 // 3 if (length & (length - 1)) else length * 3 // 2


def _stretches(windows: int, least: int) -> list[tuple[int, int]]:
    """Return (first, behind the last) of what is held against references: short ones at every window, long ones on a grid of MOST_EDGES."""
    out = []
    for length in _lengths(1, windows - least):
        step = 1 if length < least else max(1, -(-windows // MOST_EDGES))
        out += [(low, low + length) for low in range(0, windows - length + 1, step)]
    return out


def _references(windows: int, least: int) -> list[tuple[int, int]]:
    """Return (first, behind the last) of the references: from `least` windows on, each length a quarter of it apart."""
    out = []
    for length in _lengths(least, windows - 1):
        step = max(1, length // 4, windows // MOST_EDGES)
        out += [(low, low + length) for low in range(0, windows - length + 1, step)]
    return out


@cache
def _mean_variance(count: int) -> float:
    """Return the variance of the mean of so many values of an AR(1) series over that of one value."""
    return ((1 + RHO) / (1 - RHO) - 2 * RHO * (1 - RHO**count) / (count * (1 - RHO) ** 2)) / count


@cache
def _variance(count: int) -> float:
    """Return the variance of a median over that of one value; of one or two it is their mean, of many pi/2 times that of the mean."""
    return _mean_variance(count) * (1 if count < 3 else math.pi / 2)


@cache
def _seen(count: int) -> float:
    """Return which share of the true scatter the standard deviation of so many values shows: those that go on as they went lie close together."""
    return math.sqrt((1 - _mean_variance(count)) * count / (count - 1))


@cache
def _freedom(count: int) -> int:
    """Return degrees of freedom of that standard deviation: (1 - rho^2) / (1 + rho^2) of those of independent values (Bartlett), at least one."""
    return max(1, int((count - 1) * (1 - RHO**2) / (1 + RHO**2)))
