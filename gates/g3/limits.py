"""The checks that decide G3: TTFT p50 drop and throughput gain, tier by tier, against what was sealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gates.g3.deciding import AUDITS, Above, Decided, of_drop, of_gain
from gates.g3.declared import THROUGHPUT_GAIN, TTFT_DROP
from gates.model import MORE_PAIRS, Because, CheckResult, ClaimResult, ClaimStatus, Verdict
from gates.plan import Plan
from gates.rules.across import tier_pairs
from gates.rules.claim import Findings, lacking
from gates.rules.decision import PAIRS_FOR_AN_INTERVAL, Effect, Outcome, compare, pairs_needed
from gates.rules.estimates import TierStats, ms, percent, to_decimal
from gates.rules.standing import Standing, refused
from gates.text import Text

_FRAGILE = Text(
    " With one of the baseline runs left out, the answer would be another: fragile, so conditional.",
    "去掉其中一轮基线，结论就会改变：结果脆弱，故为有条件通过。",
)
_GUARD = Text(" The estimate clears the limit, its interval does not: conditional.", "估计值达标而区间未达标：有条件通过。")
_FEW_PAIRS = Text("{n} more run pairs would give an interval, and with it an answer", "再有 {n} 个轮次对方可给出区间并判定")
_TOTAL = Text("about {n} more run pairs would tell, at the scatter between the pairs so far", "按目前轮次对间的离散，约再有 {n} 个轮次对方可判定")
_NO_TOTAL = Text(
    "run pairs that scatter less would tell; at this scatter no number of them would", "轮次对离散更小方可判定；按目前离散，增加轮次对无济于事"
)
_ALL_ANSWERED = Text("a new attempt in which the candidate answers every request would tell", "产品应答全部请求的新尝试方可判定")
_AUDITED = Text("the runs for replay, placebo and agreement with G2, whole, would change it", "补齐重放、安慰剂及与 G2 一致性的轮次方可改变")
_AUDIT_MENDED = Text(
    "a new attempt in which replay, placebo and agreement with G2 are clean would change it", "重放、安慰剂及与 G2 的一致性均无异常的新尝试方可改变"
)
_MORE = Text(" The interval still holds the limit: only more run pairs can tell.", "区间仍含限值：只有更多轮次对才能判定。")


Pairs = tuple[tuple[Fraction, Fraction], ...]  # (baseline, candidate) of each run pair, whole and positive


def ttft_drop(plan: Plan, data: Findings, standing: Standing, tier: int) -> CheckResult:
    """Return the check of the TTFT p50 drop at one tier, from the run pairs of a gate's evidence."""
    found = _measured(data, standing, tier)
    values = found if isinstance(found, CheckResult) else tuple((a.ttft_p50, b.ttft_p50) for a, b in found)
    return ttft_drop_of(plan, tier, values, _records(data))


def ttft_drop_of(plan: Plan, tier: int, found: Pairs | CheckResult, evidence: tuple[str, ...]) -> CheckResult:
    """Return the check of the TTFT p50 drop (ns): blocking where the plan lists the tier. `found` may say instead why there is nothing to compare."""
    limit = plan.g3.ttft_p50_drop_min
    blank = TTFT_DROP.blank(plan, tier=tier, evidence=evidence)
    if isinstance(found, CheckResult):
        return _carry(blank, found)
    effect = Effect(found, drop=True)
    outcome = compare(effect, limit.limit, plan.decision)
    base = geometric([a for a, _ in found])
    new, most = geometric([b for _, b in found]), (1 - limit.limit) * base
    reason = Text(
        "c{t}: TTFT p50 {a} ms -> {b} ms, a drop of {v} (at least {l}, that is at most {m} ms).",
        "c{t}：TTFT p50 {a} ms -> {b} ms，降幅 {v}（下限 {l}，即不高于 {m} ms）。",
    ).fill(t=tier, a=ms(Fraction(base)), b=ms(Fraction(new)), v=percent(outcome.value, limit.limit), l=percent(limit.limit), m=ms(Fraction(most)))
    if outcome.verdict is Verdict.FAIL:
        over = Text(" It takes {d} ms less to meet the limit.", "还需再降低 {d} ms 才达标。").fill(d=ms(Fraction(new - most)))
        reason = _join(reason, over)
    decided = of_drop(plan, effect, [a for a, _ in found])
    return _answer(blank, outcome, decided, reason, outcome.value - limit.limit, _pairs_more(plan, effect, limit.limit))


def throughput_gain(plan: Plan, data: Findings, standing: Standing, tier: int) -> CheckResult:
    """Return the check of the throughput gain at one tier, from the run pairs of a gate's evidence."""
    found = _measured(data, standing, tier, but="g2_agreement")  # above the band this claim weighs more than elsewhere
    values = found if isinstance(found, CheckResult) else tuple((a.output_per_s, b.output_per_s) for a, b in found)
    return throughput_gain_of(plan, tier, values, standing, _records(data))


def throughput_gain_of(plan: Plan, tier: int, found: Pairs | CheckResult, standing: Standing, evidence: tuple[str, ...]) -> CheckResult:
    """Return the check of the throughput gain (tokens/s) against the band; above it, the plan says what follows (DESIGN 4.7)."""
    band = plan.g3.throughput_gain_band
    blank = THROUGHPUT_GAIN.blank(plan, tier=tier, evidence=evidence)
    if isinstance(found, CheckResult):
        return _carry(blank, found)
    effect = Effect(found, drop=False)
    outcome = compare(effect, band.low, plan.decision, band.high)
    base, new = geometric([a for a, _ in found]), geometric([b for _, b in found])
    reason = Text(
        "c{t}: output throughput {a} -> {b} tok/s, a gain of {v} (band {l} to {h}, ends included).",
        "c{t}：输出吞吐 {a} -> {b} tok/s，提升 {v}（区间 {l} 至 {h}，含端点）。",
    ).fill(
        t=tier,
        a=to_decimal(Fraction(base), 1),
        b=to_decimal(Fraction(new), 1),
        v=percent(outcome.value, band.low, band.high),
        l=percent(band.low),
        h=percent(band.high),
    )
    audits = [standing.get(*name) for name in AUDITS]
    decided = of_gain(plan, effect, [a for a, _ in found], [c.status if c else None for c in audits])
    refusal = standing.performance()
    if refusal and (decided.above is None or band.above != "audit"):
        return refused(blank, refusal)
    if decided.above is not None:
        change = _AUDIT_MENDED if decided.above is Above.BREACHED else _AUDITED
        if decided.above in (Above.ACCEPTED, Above.REACHES):
            change = _pairs_more(plan, effect, band.low)
        return _answer(blank, outcome, decided, _join(reason, _above_band(decided.above, audits)), band.high - outcome.value, change)
    if outcome.verdict is Verdict.FAIL:
        least = Text(" It takes {x} tok/s to reach the band.", "需达到 {x} tok/s 才进入区间。").fill(x=to_decimal(Fraction((1 + band.low) * base), 1))
        reason = _join(reason, least)
    return _answer(blank, outcome, decided, reason, min(outcome.value - band.low, band.high - outcome.value), _pairs_more(plan, effect, band.low))


_ABOVE = {
    Above.ACCEPTED: Text(" Above the band, which the plan accepts.", "高于区间，计划约定接受。"),
    Above.REFUSED: Text(" Above the band, which the plan does not accept.", "高于区间，计划约定不接受。"),
    Above.BREACHED: Text(" Above the band, and the audit found: {c}", "高于区间，且审查发现：{c}"),
    Above.MISSING: Text(
        " Above the band: replay, placebo and agreement with G2 are needed as evidence, and one of them is missing.",
        "高于区间：须有重放、安慰剂和与 G2 一致的证据，其中有缺失。",
    ),
    Above.REACHES: Text(
        " Above the band, but its interval reaches into it, and replay, placebo and G2 agree.",
        "高于区间，但其置信区间与之相交，且重放、安慰剂、G2 均一致。",
    ),
    Above.CLEAN: Text(
        " Above the band; replay, placebo and agreement with G2 are clean: conditional on both parties' approval.",
        "高于区间；重放、安慰剂及与 G2 的一致性均无异常：有条件通过，须经双方确认。",
    ),
}


def _above_band(found: Above, audits: Sequence[ClaimResult | None]) -> Text:
    """Return what is said of an estimate above the band (DESIGN 4.7)."""
    breach = next((c.reason for c in audits if c is not None and c.status is ClaimStatus.BREACHED), Text("", ""))
    return _ABOVE[found].fill(c=breach)


def _measured(data: Findings, standing: Standing, tier: int, *, but: str = "") -> tuple[tuple[TierStats, TierStats], ...] | CheckResult:
    """Return the run pairs of a tier, or a blank check with the verdict and reason why there is nothing to compare."""
    blank = CheckResult("", Text("", ""), Verdict.INCONCLUSIVE, _no_stats(tier), change=lacking(data, tier))
    refusal = standing.performance(but=but)
    if refusal:
        return refused(blank, refusal)
    found = tier_pairs(data, tier)
    if found is None:
        return blank
    failed = sum(b.failed for _, b in found)
    if failed:
        reason = Text(
            "c{t}: {n} requests of the candidate failed; the median of the others would flatter it.",
            "c{t}：产品有 {n} 个请求失败；其余请求的中位数会美化结果。",
        )
        return replace(blank, reason=reason.fill(t=tier, n=failed), change=_ALL_ANSWERED)
    return found


def _pairs_more(plan: Plan, effect: Effect, limit: Decimal) -> Text:
    """Return how many run pairs beyond those measured would decide, should the rule leave it open."""
    n = len(effect.pairs)
    if n < PAIRS_FOR_AN_INTERVAL:
        return _FEW_PAIRS.fill(n=PAIRS_FOR_AN_INTERVAL - n)
    total = pairs_needed(effect, limit, plan.decision)
    return _TOTAL.fill(n=total - n) if total is not None else _NO_TOTAL


def _answer(blank: CheckResult, outcome: Outcome, decided: Decided, reason: Text, margin: Decimal, change: Text) -> CheckResult:
    """Return the answered check; `change` is what would answer it where it is left open."""
    if decided.because is Because.FRAGILE:
        reason = _join(reason, _FRAGILE)
    elif decided.because is Because.GUARD:
        reason = _join(reason, _GUARD)
    elif decided.above is None and decided.verdict is Verdict.INCONCLUSIVE and outcome.interval.low is not None:
        reason, blank = _join(reason, _MORE), replace(blank, remedy=MORE_PAIRS)
    if decided.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID):
        blank = replace(blank, change=change)
    return replace(
        blank, verdict=decided.verdict, because=decided.because, reason=reason, value=outcome.value, interval=outcome.interval, margin=margin
    )


def _carry(blank: CheckResult, found: CheckResult) -> CheckResult:
    return replace(blank, verdict=found.verdict, reason=found.reason, remedy=found.remedy, change=found.change)


def _join(a: Text, b: Text) -> Text:
    return Text(a.en + b.en, a.zh + b.zh)


def geometric(values: Sequence[Fraction]) -> Decimal:
    """Return the geometric mean, for print and charts."""
    return Effect(tuple((Fraction(1), v) for v in values), drop=False).value() + 1


def limit_ms(plan: Plan, data: Findings, tier: int) -> float | None:
    """Return the TTFT p50 in milliseconds that just meets the drop, for the line in the chart."""
    found = tier_pairs(data, tier)
    if found is None:
        return None
    base = geometric([a.ttft_p50 for a, _ in found])
    return float(ms(Fraction((1 - plan.g3.ttft_p50_drop_min.limit) * base)))


def _no_stats(tier: int) -> Text:
    return Text("c{t}: a run pair has no statistics.", "c{t}：有轮次对没有统计。").fill(t=tier)


def _records(data: Findings) -> tuple[str, ...]:
    return tuple(r.pack.path("records.jsonl") for r in data.runs if r.arm in ("baseline", "candidate"))
