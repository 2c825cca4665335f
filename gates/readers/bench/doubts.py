"""Whether a client took a chunk without text (the one that carries only the role) for the first token.

Such a client's TTFT is the time of the HTTP answer, and the wait for the first token stands in the first gap instead.
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
