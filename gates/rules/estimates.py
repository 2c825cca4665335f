"""Estimates from requests: exact medians, nearest-rank percentiles, and throughput in the window where exactly C requests are in flight.

All from integer nanoseconds; results are fractions, so that a limit is met or missed exactly, not up to a rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from gates.readers.run_pack import Request

NS = 10**9
EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, rounding=ROUND_HALF_EVEN, traps=[])  # shifts and rounds to places; divides nothing
_PLAIN_UP_TO = 15  # the largest power of ten of a ratio that is written out; beyond it the order of magnitude says more


def median(values: Sequence[int]) -> Fraction:
    """Return the median: the middle value, or the mean of the middle two. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values have no median")
    ordered, half = sorted(values), len(values) // 2
    return Fraction(ordered[half]) if len(ordered) % 2 else Fraction(ordered[half - 1] + ordered[half], 2)


def percentile(values: Sequence[int], share: Fraction) -> int:
    """Return the nearest-rank percentile: the smallest value that at least this share of the values does not exceed."""
    if not values:
        raise ValueError("no values have no percentile")
    rank = -(-share.numerator * len(values) // share.denominator)
    return sorted(values)[max(rank, 1) - 1]


@dataclass(frozen=True)
class Window:
    """From the moment the C-th request was sent to the first end after the last request was sent: C in flight throughout."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """Return the length."""
        return self.end_ns - self.start_ns


def full_window(requests: Sequence[Request], tier: int) -> Window | None:
    """Return the window in which a closed loop of `tier` workers is full, or None when there is none."""
    if len(requests) <= tier:
        return None
    sent = sorted(r.sent_ns for r in requests)
    start, last = sent[tier - 1], sent[-1]
    end = min((r.end_ns for r in requests if r.end_ns >= last), default=start)
    return Window(start, end) if end > start else None


def mean_in_flight(requests: Sequence[Request], window: Window) -> Fraction:
    """Return the time average of requests in flight over the window."""
    covered = sum(_overlap(r, window) for r in requests)
    return Fraction(covered, window.length_ns)


def output_rate(requests: Sequence[Request], window: Window) -> Fraction:
    """Return output tokens per second in the window.

    The tokens of a request are spread evenly over its time in flight, so a request that straddles an edge counts by its share of time.
    (Counting tokens by their own time stamps would lose, at the end of the window, the work of C half-done requests whose tokens come
    last, and would make short runs look slower than long ones.) Failed requests bring no tokens, but hold their place.
    """
    credit = 0
    for r in requests:
        if r.failure is None and r.completion_tokens and r.e2e_ns > 0:
            credit += r.completion_tokens * _overlap(r, window) * NS // r.e2e_ns
    return Fraction(credit, window.length_ns)


def _overlap(r: Request, window: Window) -> int:
    return max(0, min(r.end_ns, window.end_ns) - max(r.sent_ns, window.start_ns))


@dataclass(frozen=True)
class TierStats:
    """What one run measured at one concurrency. Times in nanoseconds, of requests without failure."""

    tier: int
    requests: int
    failed: int
    ttft_sorted: tuple[int, ...]
    ttft_p50: Fraction
    ttft_p99: int
    tpot_p99: int
    ttft_mean: Fraction  # over the requests that ended in the window
    e2e_mean: Fraction
    in_flight: Fraction
    output_per_s: Fraction


def tier_stats(requests: Sequence[Request], tier: int) -> TierStats | None:
    """Return the statistics of one run at one tier, or None when there is nothing to make them from."""
    good = [r for r in requests if r.failure is None]
    window = full_window(requests, tier)
    if not good or window is None:
        return None
    inside = [r for r in good if window.start_ns <= r.end_ns <= window.end_ns]
    rate = output_rate(requests, window)
    if not inside or rate <= 0:
        return None
    ttft = sorted(r.ttft_ns for r in good)
    tpot = [(r.e2e_ns - r.ttft_ns) // (r.completion_tokens - 1) for r in good if r.completion_tokens and r.completion_tokens > 1]
    return TierStats(
        tier=tier,
        requests=len(requests),
        failed=len(requests) - len(good),
        ttft_sorted=tuple(ttft),
        ttft_p50=median(ttft),
        ttft_p99=percentile(ttft, Fraction(99, 100)),
        tpot_p99=percentile(tpot, Fraction(99, 100)) if tpot else 0,
        ttft_mean=Fraction(sum(r.ttft_ns for r in inside), len(inside)),
        e2e_mean=Fraction(sum(r.e2e_ns for r in inside), len(inside)),
        in_flight=mean_in_flight(requests, window),
        output_per_s=rate,
    )


def to_decimal(value: Fraction | int, places: int = 6) -> Decimal:
    """Return a fraction as a decimal with so many places (half to even), for print and figures."""
    scaled = Fraction(value) * 10**places
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    twice = 2 * rest
    if twice > scaled.denominator or (twice == scaled.denominator and whole % 2):
        whole += 1
    return Decimal(whole).scaleb(-places, EXACT)


def beside(value: Fraction, limit: Decimal, places: int = 10) -> Decimal:
    """Return a fraction as a decimal with so many places, or as many as it takes to stand on its own side of the limit."""
    exact = Fraction(limit)
    while ((shown := to_decimal(value, places)) > limit) != (value > exact) or (shown < limit) != (value < exact):
        places += 1
    return shown


def ms(value: Fraction | int, places: int = 3) -> Decimal:
    """Return nanoseconds as milliseconds."""
    return to_decimal(Fraction(value) / 10**6, places)


def percent(value: Decimal | Fraction, *against: Decimal, places: int = 2) -> str:
    """Return a ratio as a percentage, with as many decimals as it takes to stand on the right side of the limits it is held against.

    Never raises: a ratio from 10**16 up is told by its order of magnitude (1.00E+32 %), one that is no number by its name.
    """
    exact = to_decimal(value, 18) if isinstance(value, Fraction) else value
    if not exact.is_finite():
        return f"{exact} %"
    hundred = exact.scaleb(2, EXACT)
    if exact.adjusted() > _PLAIN_UP_TO:
        return f"{hundred:.2E} %"
    for digits in range(places, 17):
        shown = hundred.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN, EXACT)
        if all(_side(shown, limit.scaleb(2, EXACT)) == _side(exact, limit) for limit in against):
            break
    return f"{shown:f} %"


def _side(a: Decimal, b: Decimal) -> int:
    return (a > b) - (a < b)
