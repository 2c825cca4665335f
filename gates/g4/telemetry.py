"""The checks of telemetry: memory growth, coverage, gaps, and counters that must not grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from statistics import median
from typing import Any

from gates.g4.checks import Soak, answer, check
from gates.g4.series import theil_sen
from gates.model import CheckResult, ClaimResult, ClaimStatus, Limit
from gates.readers.prometheus import EXTERNAL_HITS, total
from gates.readers.strict import at, count
from gates.rules.claim import Finding, Run, fold
from gates.rules.estimates import NS, percent, to_decimal
from gates.rules.standing import Standing
from gates.steps import telemetry_period_ns
from gates.text import Text


def leak(soak: Soak, standing: Standing) -> CheckResult:
    """Return the check of memory growth: the lower bound of the Theil-Sen slope of the engine's resident memory after warm-up, over the
    plan's horizon, as a share of the memory that was free at the end of warm-up. Time is the plan's.
    """  # noqa: D205
    rule = soak.plan.g4.leak
    limit = rule.headroom_share_max
    blank = check("leak", Text("No memory leak", "无内存泄漏"), Limit("<=", high=limit), "g4.leak", soak.files("telemetry.jsonl"))
    begun = soak.clock.start_ns + int(soak.plan.scaled_seconds(rule.warmup.base) * NS)
    rows = [t for t in soak.pack.telemetry if t.get("boot_id") == soak.clock.boot_id and (count(t.get("mono_ns")) or 0) >= begun]
    points = _longest_life(soak, rows, begun)
    free = next((f for f in (count(at(t, "host", "mem_available_bytes")) for t in rows) if f), None)
    fit = theil_sen(points, float(soak.plan.decision.confidence))
    # A labelled injection may end the process; then the longest life must hold its share of the samples.
    if fit is None or not free or len(points) < soak.plan.g4.coverage_min * len(rows) / (len(soak.injections) + 1):
        text = Text(
            "{n} samples of one engine process after the warm-up show its memory: too few to tell.",
            "预热后仅有 {n} 个同一引擎进程的内存样本：不足以判断。",
        )
        return answer(blank, standing, met=None, value=None, reason=text.fill(n=len(points)))
    growth = max(fit[1], 0.0) * float(rule.horizon.base)
    share = Decimal(repr(round(growth / free, 10)))
    reason = Text(
        "Memory grows by at least {g} MiB over {h}, {v} of the {f} MiB that were free (at most {l}); estimate {e} MiB/h.",
        "内存在 {h} 内至少增长 {g} MiB，为可用 {f} MiB 的 {v}（上限 {l}）；估计 {e} MiB/h。",
    ).fill(g=f"{growth / 2**20:.1f}", h=rule.horizon, v=percent(share, limit), f=free // 2**20, l=percent(limit), e=f"{fit[0] * 3600 / 2**20:.3f}")
    return answer(blank, standing, met=share <= limit, value=share, reason=reason, margin=limit - share)


def _longest_life(soak: Soak, rows: Sequence[dict[str, Any]], begun: int) -> list[tuple[float, float]]:
    """Return (seconds of the plan, bytes) of the engine process that was seen most often."""
    lives: dict[tuple[Any, Any], list[tuple[float, float]]] = {}
    for row in rows:
        mono, rss = count(row.get("mono_ns")), count(at(row, "engine", "rss_bytes"))
        if mono is not None and rss:
            point = (float(Decimal(mono - begun) / NS * soak.clock.scale), float(rss))
            lives.setdefault((at(row, "engine", "pid"), at(row, "engine", "start_ticks")), []).append(point)
    return max(lives.values(), key=len, default=[])


def coverage(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return the checks that telemetry covered the soak: the share of time with a sample near by, and the largest gap.

    Time further than two sampling periods from the sample before it is not covered. Both ends of the soak count. Missing telemetry is never
    a fail of the product and never a pass.
    """
    files = soak.files("telemetry.jsonl")
    stamps = sorted(m for m in (count(t.get("mono_ns")) for t in soak.pack.telemetry if t.get("boot_id") == soak.clock.boot_id) if m is not None)
    inside = [m for m in stamps if soak.clock.start_ns <= m <= soak.clock.end_ns]
    edges = [soak.clock.start_ns, *inside, soak.clock.end_ns]
    gaps = [b - a for a, b in itertools.pairwise(edges)]
    period, span = _period_ns(soak), soak.clock.end_ns - soak.clock.start_ns
    limit, most = soak.plan.g4.coverage_min, soak.plan.g4.gap_max
    covered = 1 - Fraction(sum(max(0, g - 2 * period) for g in gaps), max(span, 1))
    first = check("telemetry_coverage", Text("Telemetry coverage", "遥测覆盖率"), Limit(">=", low=limit), "g4.coverage_min", files)
    reason = Text("{n} samples cover {v} of the soak (at least {l}).", "{n} 个样本覆盖全程的 {v}（下限 {l}）。").fill(
        n=len(inside), v=percent(covered, limit), l=percent(limit)
    )
    enough = True if inside and covered >= Fraction(limit) else None
    longest = Fraction(max(gaps), NS) * Fraction(soak.clock.scale)
    second = check("telemetry_gap", Text("Largest gap in telemetry", "遥测最大间隔"), Limit("<=", high=most.base), "g4.gap_max", files, "s")
    told = Text("The largest gap is {v} s (at most {l}).", "最大间隔 {v} s（上限 {l}）。").fill(v=to_decimal(longest, 1), l=most)
    small = True if inside and longest <= Fraction(most.base) else None
    return [
        answer(first, standing, met=enough, value=to_decimal(covered, 6), reason=reason, margin=to_decimal(covered, 6) - limit),
        answer(second, standing, met=small, value=to_decimal(longest, 3), reason=told, margin=most.base - to_decimal(longest, 3)),
    ]


def _period_ns(soak: Soak) -> int:
    """Return the sampling period that the step asked for."""
    return telemetry_period_ns(soak.plan)


def fatal_counters(soak: Soak, standing: Standing) -> list[CheckResult]:
    """Return one check for each fatal counter of the plan: it was seen from beginning to end, never went back, and did not grow."""
    return [_counter(soak, standing, name) for name in soak.plan.g4.fatal_counters]


def _counter(soak: Soak, standing: Standing, name: str) -> CheckResult:
    title = Text("Counter does not grow: {n}", "计数器不增长：{n}").fill(n=name)
    blank = check(f"counter_{name}", title, Limit("<=", high=Decimal(0)), "g4.fatal_counters", soak.files("telemetry.jsonl"))
    rows = [t for t in soak.pack.telemetry if t.get("boot_id") == soak.clock.boot_id]
    seen = [(count(t.get("mono_ns")), count(at(t, "counters", name))) for t in rows]
    missing = sum(value is None or mono is None for mono, value in seen)
    if not seen or missing:
        text = Text("It is missing in {m} of {n} samples.", "{n} 个样本中有 {m} 个缺少该计数。").fill(m=missing, n=len(seen))
        return answer(blank, standing, met=None, value=None, reason=text)
    steps = [(mono or 0, (value or 0) - (before or 0)) for (_, before), (mono, value) in itertools.pairwise(seen)]
    if any(step < 0 for _, step in steps):
        return answer(
            blank,
            standing,
            met=None,
            value=None,
            reason=Text("It went back within one boot: reset, so a gap.", "同一次开机内计数回退：被复位，视为间断。"),
        )
    grown = sum(step for mono, step in steps if not soak.injected(mono, soak.clock.boot_id))
    when = next((mono for mono, step in steps if step > 0 and not soak.injected(mono, soak.clock.boot_id)), None)
    if when is None:
        reason = Text("It stayed at {v} in {n} samples.", "在 {n} 个样本中保持 {v}。").fill(v=seen[-1][1], n=len(seen))
    else:
        reason = Text("It grew by {g}, first at hour {h}.", "增长 {g}，首次在第 {h} 小时。").fill(g=grown, h=f"{soak.clock.hour(when):.2f}")
    return answer(blank, standing, met=grown == 0, value=Decimal(grown), reason=reason, margin=Decimal(-grown))


def tier_exercised(run: Run) -> ClaimResult:
    """Return the claim that the soak loaded KV from the external tier: else it says nothing about it. Growth is added up over restarts."""

    def findings() -> Iterator[Finding]:
        values = [total(t.get("metrics"), EXTERNAL_HITS) for t in run.pack.telemetry]
        known = [v for v in values if v is not None]
        if len(known) < 2:
            return
        grown = sum((max(b - a, Decimal(0)) for a, b in itertools.pairwise(known)), Decimal(0))
        reason = Text("{n} prompt tokens came from the external tier.", "{n} 个提示词元来自外部层。").fill(n=format(grown.normalize(), "f"))
        yield Finding(ClaimStatus.HOLDS if grown > 0 else ClaimStatus.BREACHED, reason, grown, run.key, None, (run.pack.path("telemetry.jsonl"),))

    return fold("tier_exercised", run.arm, findings(), limit=Limit("none"))


def rss_by_slice(soak: Soak) -> dict[int, int]:
    """Return the median resident memory of the engine in each window, for the chart."""
    width = int(soak.plan.scaled_seconds(soak.plan.g4.window.base) * NS)
    bins: dict[int, list[int]] = {}
    for row in soak.pack.telemetry:
        mono, rss = count(row.get("mono_ns")), count(at(row, "engine", "rss_bytes"))
        if mono is not None and rss and row.get("boot_id") == soak.clock.boot_id and mono >= soak.clock.start_ns:
            bins.setdefault((mono - soak.clock.start_ns) // width, []).append(rss)
    return {index: int(median(values)) for index, values in bins.items()}
