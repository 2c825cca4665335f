"""What in a result file cannot be true of one run, though each figure alone could be.

Statistics that contradict each other; and a client that took a chunk without text (the one that carries only the role) for the first token: its
TTFT is the time of the HTTP answer, and the wait for the first token stands in the first gap instead.
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
