"""The soak as a series: one clock, windows of it, and the statistics of trends. All on the target's monotonic clock, scaled by the plan."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import NormalDist, median
from typing import Any

from gates.plan import Plan
from gates.readers.run_pack import Pack, Request
from gates.readers.strict import at, count
from gates.rules.estimates import NS
from gates.rules.estimates import median as exact_median

_MOST_POINTS = 400  # of a trend: all pairs of them are compared


@dataclass(frozen=True)
class Injection:
    """A labelled disturbance, agreed beforehand: judged by its own check and kept out of the others."""

    label: str
    from_ns: int
    to_ns: int
    boot_id: str

    def covers(self, ns: int, boot_id: Any) -> bool:
        """Return whether a moment lies within."""
        return boot_id == self.boot_id and self.from_ns <= ns <= self.to_ns


@dataclass(frozen=True)
class Clock:
    """The part of the soak that counts: one boot of the host, from its first to its last moment under load."""

    boot_id: str
    start_ns: int
    end_ns: int
    scale: Decimal
    boots: int  # how many boots the evidence spans

    @property
    def plan_seconds(self) -> Decimal:
        """Return its length in seconds of the plan."""
        return Decimal(self.end_ns - self.start_ns) / NS * self.scale

    def hour(self, ns: int) -> float:
        """Return a moment in hours of the plan since the start."""
        return float(Decimal(ns - self.start_ns) / NS * self.scale / 3600)


@dataclass(frozen=True)
class Slice:
    """One window: its requests, and what they amount to. `ttft_p50` is None where there are too few for a median."""

    index: int
    start_ns: int
    requests: int
    errors: int
    ttft_p50: Fraction | None
    output_per_s: Fraction  # per second of the clock


def injections(inputs: Mapping[str, Any]) -> tuple[Injection, ...] | None:
    """Return the labelled injections, or None when one of them is not well formed."""
    rows, out = inputs.get("injections"), []
    if rows is not None and not isinstance(rows, list):
        return None
    for row in rows or ():
        low, high, boot, label = count(at(row, "from_ns")), count(at(row, "to_ns")), at(row, "boot_id"), at(row, "label")
        if low is None or high is None or high < low or not isinstance(boot, str) or not isinstance(label, str):
            return None
        out.append(Injection(label, low, high, boot))
    return tuple(out)


def clock_of(plan: Plan, pack: Pack) -> Clock | None:
    """Return the clock of the last boot of the soak, or None without requests. Boot ids and monotonic time decide, not wall clocks."""
    requests = pack.of("soak")
    phase = pack.phase("soak")
    if not requests or phase is None:
        return None
    boots = list(dict.fromkeys(r.boot_id for r in requests))
    boots += [b for b in dict.fromkeys(t.get("boot_id") for t in pack.telemetry) if isinstance(b, str) and b not in boots]
    last = [r for r in requests if r.boot_id == requests[-1].boot_id]
    start, end = min(r.sent_ns for r in last), max(r.end_ns for r in last)
    if len(boots) == 1:
        begun, ended = count(phase.get("started_ns")), count(phase.get("ended_ns"))
        if begun is None or ended is None or not begun <= start <= end <= ended:
            return None
    return Clock(requests[-1].boot_id, start, end, plan.rig.time_scale, len(boots))


def slices(plan: Plan, requests: Sequence[Request], clock: Clock) -> tuple[Slice, ...]:
    """Return the whole windows of the soak, in order; requests count in the window in which they ended."""
    width = int(plan.scaled_seconds(plan.g4.window.base) * NS)
    total = (clock.end_ns - clock.start_ns) // width if width else 0
    bins: list[list[Request]] = [[] for _ in range(total)]
    for r in requests:
        index = (r.end_ns - clock.start_ns) // width if width else -1
        if r.boot_id == clock.boot_id and 0 <= index < total:
            bins[index].append(r)
    out = []
    for index, rows in enumerate(bins):
        good = [r for r in rows if r.failure is None]
        p50 = exact_median([r.ttft_ns for r in good]) if len(good) >= plan.g4.window_requests_min else None
        rate = Fraction(sum(r.completion_tokens or 0 for r in good) * NS, width)
        out.append(Slice(index, clock.start_ns + index * width, len(rows), len(rows) - len(good), p50, rate))
    return tuple(out)


@dataclass(frozen=True)
class Shift:
    """A change of level between windows: relative size (adverse is positive), the first window of the new level, and its p value."""

    size: float
    at: int
    p: float


def worst_shift(values: Sequence[float], *, upwards: bool, least: int, p_max: float) -> Shift | None:
    """Return the largest adverse change of level that a one-sided rank-sum test tells from noise, or None.

    For every split with at least `least` values on each side: the size is the ratio of the medians less one, the test Mann-Whitney with
    the normal approximation. A median of few windows moves by chance; a shift counts only when the ranks of the two sides differ too.
    """
    worst: Shift | None = None
    for k in range(least, len(values) - least + 1):
        before, after = values[:k], values[k:]
        low, high = median(before), median(after)
        size = high / low - 1 if upwards else low / high - 1
        if size <= 0 or (worst is not None and size <= worst.size):
            continue
        p = _rank_sum_p(before, after) if upwards else _rank_sum_p(after, before)
        if p <= p_max:
            worst = Shift(size, k, p)
    return worst


def _rank_sum_p(lower: Sequence[float], upper: Sequence[float]) -> float:
    """Return the one-sided p value of `upper` being larger (Mann-Whitney U, normal approximation, ties count half)."""
    ordered, n, m = sorted(lower), len(lower), len(upper)
    wins = sum((bisect_right(ordered, x) + _below(ordered, x)) / 2 for x in upper)
    mean, deviation = n * m / 2, math.sqrt(n * m * (n + m + 1) / 12)
    return 1 - NormalDist().cdf((wins - mean - 0.5) / deviation)


def _below(ordered: Sequence[float], x: float) -> int:
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def thin(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return at most _MOST_POINTS of a series, evenly spaced, both ends kept."""
    if len(points) <= _MOST_POINTS:
        return points
    last = len(points) - 1
    return [points[round(i * last / (_MOST_POINTS - 1))] for i in range(_MOST_POINTS)]


def theil_sen(points: Sequence[tuple[float, float]], confidence: float) -> tuple[float, float] | None:
    """Return (slope, its one-sided lower bound): the median of all pairwise slopes, and Sen's bound from Kendall's variance."""
    rows = thin(points)
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(rows) for b in rows[i + 1 :] if b[0] > a[0])
    n = len(rows)
    if n < 8 or not slopes:
        return None
    reach = NormalDist().inv_cdf(confidence) * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    lower = max(0, math.floor((len(slopes) - reach) / 2))
    return median(slopes), slopes[min(lower, len(slopes) - 1)]
