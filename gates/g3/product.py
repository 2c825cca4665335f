"""Checks of the product's own faults, and the guards that stand beside the limits."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gates import remedies
from gates.engine_counters import COUNTED_IN_TOKENS, LOAD_FAILURES, family_of
from gates.g3.declared import ANSWERS_FOR, LOAD_ERRORS, RECOMPUTE, SLA, TPOT_P99, TTFT_P99
from gates.g3.limits import Pairs, geometric
from gates.g3.published import with_published
from gates.model import CheckResult, ClaimStatus, Limit, Severity, Verdict
from gates.plan import Plan
from gates.readers.prometheus import exposes, failures_to_load, growth, series_of
from gates.rules.across import tier_pairs
from gates.rules.claim import Findings, Run, lacking
from gates.rules.decision import Effect
from gates.rules.estimates import ms, percent, to_decimal
from gates.rules.failures_counted import grown
from gates.rules.standing import Standing, refused
from gates.steps import numbered
from gates.text import Text


def product_checks(data: Findings, standing: Standing) -> list[CheckResult]:
    """Return the blocking checks of the candidate's own faults."""
    checks = []
    for name, declared in ANSWERS_FOR.items():
        claim = standing.get(name, "candidate")
        if claim is None or claim.status is ClaimStatus.NOT_TESTED:
            continue
        verdict = {ClaimStatus.HOLDS: Verdict.PASS, ClaimStatus.BREACHED: Verdict.FAIL}.get(claim.status, Verdict.INCONCLUSIVE)
        check = replace(
            declared.blank(data.plan, tier=claim.tier, evidence=claim.evidence),
            verdict=verdict,
            reason=claim.reason,
            value=claim.value,
            change=(claim.change or remedies.told(claim.evidence)) if verdict is Verdict.INCONCLUSIVE else None,
        )
        refusal = standing.blame()
        checks.append(refused(check, refusal) if refusal else check)
    checks.append(_load_errors(data, standing))
    return checks


def _load_errors(data: Findings, standing: Standing) -> CheckResult:
    """Return the check that no failed KV load was counted, by the engine or an endpoint of its offload; where none has such a counter, it says so."""
    files = tuple(r.pack.path("counters.jsonl") for r in data.of("candidate"))
    missing = Text("The engine's counter of failed KV loads is missing.", "缺少引擎的 KV 加载失败计数。")
    blank = replace(LOAD_ERRORS.blank(data.plan, evidence=files), reason=missing, change=remedies.told(files))
    counts = [count for view in data.places("candidate") for tier in view.tiers for count in _failed_loads(view, tier)]
    if not counts and data.of("candidate"):
        reason = Text(
            "This engine has no counter of failed KV loads; hits, failures and outputs tell instead.",
            "该引擎没有此计数；由命中、失败和输出检查代替。",
        )
        return replace(blank, change=None, verdict=Verdict.PASS, severity=Severity.ADVISORY, reason=reason)
    refusal = standing.blame()
    if refusal:
        return refused(blank, refusal)
    total = Decimal(int(sum((more for _, more in counts if more is not None), Decimal(0))))
    if not counts or (total == 0 and any(more is None for _, more in counts)):
        return blank
    in_tokens = any(family_of(run.metrics_names or ()) in COUNTED_IN_TOKENS for run in data.of("candidate"))
    loads = Text("{n} KV loads failed (none may){w}.", "{n} 次 KV 加载失败（不应有）{w}。")
    tokens = Text("The KV of {n} tokens was found and could not be loaded (none may){w}.", "{n} 个词元的 KV 命中但加载失败（不应有）{w}。")
    names = ", ".join(sorted({name.partition("{")[0] for name, more in counts if more}))
    where = Text(": {s}", "：{s}").fill(s=names) if names else Text("", "")
    reason = (tokens if in_tokens else loads).fill(n=total, w=where)
    return replace(blank, change=None, verdict=Verdict.PASS if total == 0 else Verdict.FAIL, reason=reason, value=total, margin=-total)


def _failed_loads(run: Run, tier: int) -> list[tuple[str, Decimal | None]]:
    """Return (counter, growth) at one tier; None for one that the engine names among its own and that is not there."""
    found = grown(run, "measure", tier, failures_to_load)
    names = [str(name) for name in run.metrics_names or ()]
    pair = run.pack.counter_pair("measure", tier)
    if family_of(names) in COUNTED_IN_TOKENS and exposes(names, LOAD_FAILURES):
        told = ", ".join(name for name, _ in series_of(family_of(names), LOAD_FAILURES))
        found.append((told, growth(pair[0].get("metrics"), pair[1].get("metrics"), LOAD_FAILURES) if pair else None))
    if run.metrics_names is None or (not found and failures_to_load(dict.fromkeys(names, "0"))):
        found.append(("", None))
    return found


def guards(plan: Plan, data: Findings, standing: Standing, tier: int) -> list[CheckResult]:
    """Return what must not get worse at one tier: TTFT p99 and TPOT p99 (geometric mean ratio of the run pairs), and the SLA where agreed."""
    out = []
    for declared, what, name, limit in (
        (TTFT_P99, "ttft_p99", "TTFT p99", plan.g3.guards.ttft_p99_ratio_max),
        (TPOT_P99, "tpot_p99", "TPOT p99", plan.g3.guards.tpot_p99_ratio_max),
    ):
        reason = Text("c{t}: a run pair has no statistics.", "c{t}：有轮次对没有统计。").fill(t=tier)
        blank = replace(declared.blank(plan, tier=tier), reason=reason, change=lacking(data, tier))
        out.append(_guard(blank, data, standing, what, name, limit))
    if tier in (plan.g3.sla.ttft_p50 or {}):
        out.append(_sla(plan, data, standing, tier))
    return out


def _guard(blank: CheckResult, data: Findings, standing: Standing, what: str, name: str, limit: Decimal) -> CheckResult:
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    found = tier_pairs(data, blank.tier or 0)
    if found is None or any(b.failed for _, b in found) or any(getattr(s, what) <= 0 for pair in found for s in pair):
        return blank
    effect = Effect(tuple((Fraction(getattr(a, what)), Fraction(getattr(b, what))) for a, b in found), drop=False)
    ratio, met = effect.value(limit - 1) + 1, not effect.exceeds(limit - 1)
    n = min(b.requests for _, b in found)
    reason = Text("{n} is {v} of the baseline's (at most {l}), from {k} requests a run.", "{n} 为基线的 {v}（上限 {l}），每轮 {k} 个请求。")
    reason = reason.fill(n=name, v=percent(ratio, limit), l=percent(limit), k=n)
    return replace(blank, change=None, verdict=Verdict.PASS if met else Verdict.FAIL, reason=reason, value=ratio, margin=limit - ratio)


def _sla(plan: Plan, data: Findings, standing: Standing, tier: int) -> CheckResult:
    """Hold the candidate's TTFT p50 in the runs of a gate's evidence against the agreed absolute limit."""
    blank = CheckResult("", Text("", ""), Verdict.INCONCLUSIVE, Text("c{t}: a run has no statistics.", "c{t}：有轮次没有统计。").fill(t=tier))
    blank = replace(blank, change=lacking(data, tier))
    refusal = standing.performance()
    found = tier_pairs(data, tier)
    if refusal:
        return sla_of(plan, tier, refused(blank, refusal), ())
    if found is None or any(b.failed for _, b in found):
        return sla_of(plan, tier, blank, ())
    return sla_of(plan, tier, tuple((a.ttft_p50, b.ttft_p50) for a, b in found), ())


def sla_of(plan: Plan, tier: int, found: Pairs | CheckResult, evidence: tuple[str, ...]) -> CheckResult:
    """Hold the slowest candidate's TTFT p50 (ns) against the agreed absolute limit. `found` may say instead why there is nothing to hold."""
    sla = (plan.g3.sla.ttft_p50 or {})[tier]
    limit_ns = Fraction(sla.ns)
    limit = ms(limit_ns)
    blank = replace(SLA.blank(plan, tier=tier, evidence=evidence), limit=Limit("<=", high=limit))
    if isinstance(found, CheckResult):
        return replace(blank, verdict=found.verdict, reason=found.reason, remedy=found.remedy, change=found.change)
    worst = max(b for _, b in found)
    reason = Text("c{t}: TTFT p50 is {v} ms in the slowest run (at most {l}).", "c{t}：最慢一轮 TTFT p50 为 {v} ms（上限 {l}）。").fill(
        t=tier, v=ms(worst), l=sla
    )
    return replace(
        blank, change=None, verdict=Verdict.PASS if worst <= limit_ns else Verdict.FAIL, reason=reason, value=ms(worst), margin=limit - ms(worst)
    )


def recompute_speedup(data: Findings, standing: Standing, tier: int) -> CheckResult:
    """Return how much faster recovery is than recomputing, for information: no limit is agreed."""
    missing = Text("c{t}: the recompute run has no statistics.", "c{t}：重算轮次没有统计。").fill(t=tier)
    blank = replace(RECOMPUTE.blank(data.plan, tier=tier), reason=missing, change=lacking(data, tier))
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    mine = {numbered("recompute", n) for n in range(1, data.plan.arms.controls + 1)}
    base, found = [run.stats.get(tier) for run in data.of("recompute") if run.key in mine], tier_pairs(data, tier)
    known = [stats.ttft_p50 for stats in base if stats is not None]
    if not known or len(known) < len(base) or found is None:
        return blank
    slow, fast = Fraction(geometric(known)), Fraction(geometric([b.ttft_p50 for _, b in found]))
    ratio = to_decimal(slow / fast, 3)
    reason = Text(
        "c{t}: {a} ms recomputed, {b} ms recovered: {r} times as fast. For information, no limit is agreed.",
        "c{t}：重算 {a} ms，恢复 {b} ms：{r} 倍。仅供参考，未约定限值。",
    )
    told = reason.fill(t=tier, a=ms(slow), b=ms(fast), r=ratio)
    return replace(blank, change=None, verdict=Verdict.PASS, reason=with_published(data.plan, "recompute_speedup", told, tier), value=ratio)
