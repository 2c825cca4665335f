"""Did the page cache fill up with what was read while it was measured: judged where the host tells it, deciding nothing.

KV that is read past the page cache (O_DIRECT, GDS) leaves it as it was. Where it grows by what was read, a second reading of the same prefix
would come from memory: in a soak, whose prefixes rotate, and in whatever asks a prefix twice. The residency checks tell it before each tier,
this of the time between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gates import declared_common, remedies
from gates.model import CheckResult, Verdict
from gates.plan import Plan
from gates.readers.strict import at, count
from gates.rules.claim import Run
from gates.rules.estimates import beside, percent
from gates.text import Text


def page_growth(gate: str, plan: Plan, runs: Sequence[Run]) -> CheckResult | dict[str, Any]:
    """Return the advisory check of the growth of the host's page cache while KV was read, over what was read, in the phase with most.

    Of a soak, which reads its files many times over, no more than these files hold can stay: then their size is what it is held against.
    Other programs of the host fill the page cache too, so a little tells nothing.
    """
    declared, reading = declared_common.page_growth(gate), [view for run in runs if plan.arms.recovers(run.arm) for view in run.places]
    files = tuple(dict.fromkeys(run.pack.path("counters.jsonl") for run in reading))
    blank = declared.blank(plan, evidence=files)
    told = [share for run in reading for share in _shares(run)]
    known = [share for share in told if share is not None]
    if not known:
        return declared.not_told(plan)
    if len(known) < len(told):
        reason = Text("{n} of {m} phases do not tell the page cache before and after.", "{m} 个阶段中有 {n} 个未给出前后的页缓存。")
        return replace(blank, reason=reason.fill(n=len(told) - len(known), m=len(told)), change=remedies.told(files))
    limit, most = plan.validity.page_cache_growth_max, max(Fraction(0), *known)
    reason = Text(
        "Where it grew most, the page cache grew by {v} of the KV that was read meanwhile (at most {l}).",
        "页缓存增长最多的阶段，其增长为同期读取 KV 的 {v}（上限 {l}）。",
    ).fill(v=percent(most, limit), l=percent(limit))
    value, verdict = beside(most, limit, 4), Verdict.PASS if most <= Fraction(limit) else Verdict.FAIL
    return replace(blank, verdict=verdict, reason=reason, value=value, margin=limit - value)


def _shares(run: Run) -> Iterator[Fraction | None]:
    """Yield the growth over what was read for each measured phase that read anything; None where one does not tell."""
    for tier in run.tiers:
        pair = run.pack.counter_pair(run.phase, tier)
        cached, read = ([count(at(row, *keys)) for row in pair or ()] for keys in (("page_cache", "cached_bytes"), ("engine_io", "read_bytes")))
        held = [n for c in run.pack.coldness if c.get("when") in ("after_cool", "before_tier") and (n := count(c.get("bytes")))]
        if pair is None or None in cached or None in read:
            yield None
            continue
        took = (read[1] or 0) - (read[0] or 0)
        if took > 0:
            yield Fraction((cached[1] or 0) - (cached[0] or 0), min([took, *held]))
