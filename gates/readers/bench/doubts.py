"""What in a result file cannot be true of one run, though each figure alone could be.

Statistics that contradict each other, the rows or the rates of the same file (times that do not fill the run's clock: flight.py); and a client
that took a chunk without text (the one that carries only the role) for the first token: its TTFT is the time of the HTTP answer, and the wait for
the first token stands in the first gap instead.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gates.readers.common import Collector
from gates.units import rounded

if TYPE_CHECKING:
    from gates.readers.bench.figures import BenchRun, Request

# The first gap of a stream is one decode step, as the others are. Four of them, and longer than the TTFT itself, is the wait for the first token.
STEPS = 4
# Half of all values are at least the median, so a mean is at least half of it. A mean of a hundred medians is a field in another unit (s for ms).
BELOW, BEYOND = 2, 100
ROUNDING = Decimal("1.01")  # tools print their statistics with two decimals
DOUBLES = Decimal("0.000001")  # the rounding of doubles, as a part
FEWEST_DECIMALS = 2  # a number that is printed with fewer is a whole one of a tool that prints doubles, not a rounded one
_RATES = {
    "requests": ("requests per second", "每秒请求数"),
    "input": ("input tokens per second", "每秒输入词元"),
    "output": ("output tokens per second", "每秒输出词元"),
    "total": ("total tokens per second", "每秒总词元"),
}


def first_token_doubt(run: BenchRun, rows: list[Request] | None, found: Collector) -> None:
    """Add the problem `first_token_doubtful` where the wait for the first token stands in a gap after the "first token"."""
    wait = _from_rows(rows) or _from_statistics(run)
    if wait:
        found.trouble(
            "first_token_doubtful",
            "TTFT p50 is {ttft} ms, but a gap of {gap} ms follows it: this client took a chunk without text (the role chunk) for the first token.",
            "TTFT p50 为 {ttft} ms，其后却有 {gap} ms 的间隔：该客户端把不含文本的数据块（角色块）当成了首个词元。",
            ttft=rounded(wait[0], 3),
            gap=rounded(wait[1], 3),
        )


def statistics_doubt(ttft_p50: Decimal, run: BenchRun, found: Collector) -> None:
    """Add the problem `statistics_conflict` where the TTFT p50 (ms) that counts cannot stand beside the tool's mean, p99 or the run's duration."""
    mean, p99 = run.figures.get("ttft.mean"), run.figures.get("ttft.p99")
    duration = None if run.duration is None else run.duration * 1000
    for name, value, wrong in (
        ("p99", p99, p99 is not None and ttft_p50 > p99 * ROUNDING),
        ("mean", mean, mean is not None and (ttft_p50 > BELOW * mean * ROUNDING or BEYOND * ttft_p50 < mean)),
        ("duration", duration, duration is not None and ttft_p50 > duration * ROUNDING),
    ):
        if wrong:
            found.trouble(
                "statistics_conflict",
                "TTFT p50 is {a} ms, which cannot be beside the {name} of {b} ms: one of them is wrong or in another unit.",
                "TTFT p50 为 {a} ms，与{name_zh} {b} ms 不可能并存：其一有误或单位不同。",
                a=rounded(ttft_p50, 3),
                b=rounded(value or Decimal(0), 3),
                name=name,
                name_zh={"p99": " p99", "mean": "均值", "duration": "用时"}[name],
            )


def rates_doubt(run: BenchRun, found: Collector) -> None:
    """Add the problem `rate_conflict` where no one duration can explain the stated duration (s) and every stated rate (1/s) of the run.

    Each rate is an amount / duration, so amount / rate is the duration that it implies, as a range: half a unit of its last printed digit to
    each side, and the tool's own slack. All ranges must have a value in common.
    """
    both = None if run.input_total is None or run.output_total is None else run.input_total + run.output_total
    amounts = {"requests": run.ok, "input": run.input_total, "output": run.output_total, "total": both}
    implied = [(("duration", "用时"), *_range(run.duration, run.slack))] if run.duration else []
    for name, words in _RATES.items():
        rate, amount = run.output_rate if name == "output" else run.rates.get(name), amounts[name]
        if rate is not None and amount:
            low, high = _range(rate, run.slack)
            implied.append((words, amount / high if high else Decimal("Infinity"), amount / low if low else Decimal("Infinity")))
    if not implied:
        return
    longest, shortest = max(implied, key=lambda row: row[1]), min(implied, key=lambda row: row[2])
    if longest[1] > shortest[2]:
        found.trouble(
            "rate_conflict",
            "The rates contradict each other: by its {a} the run took at least {x} s, by its {b} at most {y} s.",
            "各项速率相互矛盾：由{a_zh}推得该轮至少用时 {x} 秒，由{b_zh}推得至多 {y} 秒。",
            a=longest[0][0],
            a_zh=longest[0][1],
            x=_said(longest[1]),
            b=shortest[0][0],
            b_zh=shortest[0][1],
            y=_said(shortest[2]),
        )


def rows_doubt(run: BenchRun, rows: list[Request] | None, found: Collector) -> None:
    """Add the problem `statistics_conflict` where the tool's TTFT mean or p99 (ms) is not that of the file's rows.

    A p99 may be interpolated or of the nearest rank: it must lie between the two rows around it. Rows that the tool counts otherwise than we
    do (an empty stream as an answer) tell nothing about its statistics.
    """
    values = sorted(r.ttft for r in rows or () if r.answered and r.ttft is not None)
    if not values or not all(r.answered if r.ok else True for r in rows or ()) or any(r.answered and r.ttft is None for r in rows or ()):
        return
    mean, at, last = sum(values, Decimal(0)) / len(values), (len(values) - 1) * 99 // 100, len(values) - 1
    ranges = {"mean": (mean, mean), "p99": (values[max(at - 1, 0)], values[min(at + 2, last)])}
    for name, (low, high) in ranges.items():
        stated = run.figures.get(f"ttft.{name}")
        if stated is not None and not low - _half(stated) <= stated <= high + _half(stated):
            found.trouble(
                "statistics_conflict",
                "TTFT {name}: the rows give {a} ms, the tool's statistics say {b} ms.",
                "TTFT {name_zh}：由明细计算为 {a} ms，工具统计为 {b} ms。",
                name=name,
                name_zh={"mean": "均值", "p99": "p99"}[name],
                a=_said(low if low == high else values[min(at + 1, last)]),
                b=_said(stated),
            )


def _half(value: Decimal) -> Decimal:
    """Return how far the true value may lie from a printed one: half a unit of its last digit, or the rounding of doubles."""
    exponent = value.as_tuple().exponent
    decimals = max(FEWEST_DECIMALS, -exponent if isinstance(exponent, int) else 0)
    return max(Decimal(5).scaleb(-min(decimals, 40) - 1), abs(value) * DOUBLES)


def _range(value: Decimal, slack: Decimal) -> tuple[Decimal, Decimal]:
    """Return the least and the greatest value that a printed one can stand for; never below 0."""
    away = _half(value) + value * slack
    return max(value - away, Decimal(0)), value + away


def _said(value: Decimal) -> str:
    """Return a time for a sentence; one that is no size of a time (from a hostile file) in its exponent's form."""
    return format(value, ".3f") if value < 10**12 else format(value, ".3e")


def _from_rows(rows: list[Request] | None) -> tuple[Decimal, Decimal] | None:
    """Return TTFT and first gap (medians, ms) where the first gap is no decode step."""
    timed = [r for r in rows or () if r.answered and len(r.gaps) > 1 and r.ttft is not None]
    if not timed:
        return None
    first = _middle([r.gaps[0] for r in timed])
    later = _middle([gap for r in timed for gap in r.gaps[1:]])
    ttft = _middle([r.ttft for r in timed if r.ttft is not None])
    return (ttft, first) if first > STEPS * later and first > ttft else None


def _from_statistics(run: BenchRun) -> tuple[Decimal, Decimal] | None:
    """Return the same from statistics: decode time beyond n - 1 median gaps that is longer than the TTFT, with a single gap that long among them."""
    ttft, tpot, gap, top = (run.figures.get(k) for k in ("ttft.p50", "tpot.p50", "itl.p50", "itl.top"))
    if ttft is None or tpot is None or gap is None or top is None or not run.ok or not run.output_total:
        return None
    extra = (tpot - gap) * (run.output_total / run.ok - 1)
    return (ttft, extra) if extra > ttft and extra > STEPS * gap and top > ttft else None


def _middle(values: list[Decimal]) -> Decimal:
    return sorted(values)[len(values) // 2]
