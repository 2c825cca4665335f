"""What the samples tell beside what decides: the hits of the external tier over time, and the growth of what mends itself.

A share of hits that falls through the soak says that the tier loses, or evicts, what it should keep.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gates.g4.answers import answer, check, declared_as, untold
from gates.g4.drift import more_windows, too_few, usable_windows
from gates.g4.over_boots import steps
from gates.g4.series import Soak
from gates.g4.tier import Stretch, answered, first_texts, stretches
from gates.model import CheckResult
from gates.readers.soak_telemetry import WATCHED
from gates.rules.estimates import beside, percent, to_decimal
from gates.rules.standing import Standing
from gates.rules.trends import middle_of, theil_sen
from gates.text import Text


def hits_trend(soak: Soak, standing: Standing) -> CheckResult | dict[str, Any]:
    """Return the advisory check of the hits' trend: the lower bound of the fall of a Theil-Sen line over the windows, against their middle.

    A window's share is what the tier served over what the requests answered meanwhile had stored, both between the samples of one process that
    enclose the window. Single windows are noisy; the bound, not the estimate, is held against the limit.
    """
    if not (soak.telemetry.hits >= 0).any():
        return declared_as("excursion_hits").not_told(soak.plan)
    limit = soak.plan.g4.excursion_max
    blank = check(soak, "excursion_hits", soak.files("telemetry.jsonl", "records.jsonl"))
    usable, few = usable_windows(soak)
    shares = _shares(soak)
    points = [(s.index, shares[s.index]) for s in usable if s.index in shares]
    short = too_few(soak, len(points), few + len(usable) - len(points))
    fit = theil_sen([(n, -share) for n, share in points], float(soak.plan.decision.confidence)) if short is None else None
    middle = middle_of([share for _, share in points]) if points else Fraction(0)
    if fit is None or middle <= 0:
        nothing = Text("Too few windows have hits of the external tier for a trend.", "有外部层命中的窗口过少，无法判断趋势。")
        return untold(blank, standing, reason=short or nothing, change=more_windows(soak))
    exact = max(Fraction(0), Fraction(fit[1]) * (points[-1][0] - points[0][0]) / middle)
    fall = beside(exact, limit)
    reason = Text(
        "The share of stored tokens that the tier served falls by at least {v} over the soak (at most {l}); its middle is {m}.",
        "外部层提供的已存词元占比全程至少下降 {v}（上限 {l}）；中位为 {m}。",
    ).fill(v=percent(fall, limit), l=percent(limit), m=percent(middle))
    return answer(blank, standing, met=exact <= Fraction(limit), value=fall, reason=reason, margin=limit - fall)


def watched(soak: Soak, standing: Standing) -> list[CheckResult | dict[str, Any]]:
    """Return one advisory check for each counter of what mends itself that is told and that the plan does not forbid; an entry when none is.

    No limit is agreed: corrected errors, replays and timeouts are told with their growth per hour of the plan (acceptance 4).
    """
    names = [name for name in WATCHED if name not in soak.plan.g4.fatal_counters]
    rows = [_told(soak, standing, name) for name in names if (soak.telemetry.counters[name] >= 0).any()]
    return [*rows] if rows or not names else [declared_as("watched_").not_told(soak.plan)]


def _told(soak: Soak, standing: Standing, name: str) -> CheckResult:
    blank = check(soak, f"watched_{name}", soak.files("telemetry.jsonl"), name=name)
    values = soak.telemetry.counters[name]
    whole = bool((values >= 0).all())
    if not whole:
        reason = Text("It is missing in {m} of {n} samples.", "{n} 个样本中有 {m} 个缺少该计数。").fill(m=int((values < 0).sum()), n=len(values))
        change = Text("a soak in which every sample tells {n} would tell", "每个样本均给出 {n} 的稳定性运行方可判定").fill(n=name)
        return untold(blank, standing, reason=reason, change=change)
    grown = sum(int(np.maximum(np.diff(values[soak.in_boot(boot.id)]), 0).sum()) for boot in soak.line.boots)
    grown += sum(step.grown for step in steps(soak, name))
    hours = max(soak.line.hour(soak.line.end_ns), Decimal("0.001"))
    reason = Text("It grew by {g}, that is {h} an hour. For information, no limit is agreed.", "增长 {g}，即每小时 {h}。仅供参考，未约定限值。")
    return answer(blank, standing, met=True, value=Decimal(grown), reason=reason.fill(g=grown, h=to_decimal(Fraction(grown) / Fraction(hours), 3)))


def _shares(soak: Soak) -> dict[int, Fraction]:
    """Return the tier's share in each window of the stretch that counts, as far as samples of one process bound half of it or more.

    Samples may lie further apart than a window is wide, so hits and requests are counted between the same two samples: those at or before the
    window's begin and at or behind its end. A window in which the engine ended is seen as far as the longer of its lives goes. What a stretch
    counts beyond all its requests is of texts that came right behind its end, and is not taken for more than all.
    """
    texts, context = first_texts(soak.records, soak.line.boot_id), soak.plan.workload.context_tokens
    mine = [s for s in stretches(soak.telemetry) if s.boot_id == soak.line.boot_id]
    out: dict[int, Fraction] = {}
    for window in soak.slices:
        low, high = window.start_ns, window.start_ns + soak.width_ns
        seen, begin, end, tokens = max((_seen(stretch, low, high) for stretch in mine), default=(0, 0, 0, 0))
        requests = answered(texts, begin, end)
        if 2 * seen >= soak.width_ns and requests:
            out[window.index] = min(Fraction(1), Fraction(tokens, requests * context))
    return out


def _seen(stretch: Stretch, low: int, high: int) -> tuple[int, int, int, int]:
    """Return how much of a window (ns) the samples of a stretch bound, the two that enclose that part (ns), and the tokens in between."""
    first = max(int(np.searchsorted(stretch.mono, low, "right")) - 1, 0)
    last = min(int(np.searchsorted(stretch.mono, high, "left")), len(stretch.mono) - 1)
    begin, end = int(stretch.mono[first]), int(stretch.mono[last])
    return max(0, min(end, high) - max(begin, low)), begin, end, int(stretch.hits[last] - stretch.hits[first])
