"""G2, the single-node baseline: measured at each concurrency, repeatable, then frozen and hashed for G3 to be held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from gates.bundle import Bundle
from gates.g1.fabric_paths import fabric_path_checks
from gates.g1.pack import HostPack
from gates.g2.declared import FABRIC, THROUGHPUT_CV, TTFT_CV
from gates.g2.volume import volume_checks
from gates.model import CheckResult, GateJudgement, GateSpec, Severity, StepSpec, Verdict
from gates.plan import Plan
from gates.rules.across import frozen_hash
from gates.rules.cell_lines import cell_lines
from gates.rules.claim import Findings, lacking
from gates.rules.completeness import evidence_check, gather, wanted_files
from gates.rules.decision import Effect
from gates.rules.engine import IDENTITY
from gates.rules.estimates import ms, percent, to_decimal
from gates.rules.rig import rig_checks
from gates.rules.run_claims import run_claims
from gates.rules.standing import Standing, leave_out, not_tested, refused, validity_check
from gates.steps import deploy_step, judge_step, report_step, run_step
from gates.text import Text, amid

_RISK = Text(
    "Decision rule: the coefficient of variation of the runs against its limit; with few runs it is itself uncertain, and both parties bear that.",
    "判定规则：以各轮次的变异系数与限值比较；轮次少时该系数本身不确定，风险由双方共担。",
)


def steps(plan: Plan) -> tuple[StepSpec, ...]:
    """Return the steps: deploy, the baseline runs (the first one stores), judge, report."""
    runs = (run_step(plan, key=f"run-{n}", arm="baseline", run_index=n, prompts="g2", store=n == 1) for n in range(1, plan.g2.runs + 1))
    return (deploy_step(), *runs, judge_step(), report_step())


def judge(plan: Plan, bundle: Bundle) -> GateJudgement:
    """Judge a G2 bundle, and freeze its baseline when every blocking check passes."""
    declared = steps(plan)
    gathered = gather(plan, bundle, declared)
    claims = leave_out(plan, run_claims(gathered.findings))
    standing = Standing(not gathered.problems, claims)
    checks = [
        evidence_check("G2", plan, gathered.problems, len(wanted_files(bundle, declared)), gathered.findings.runs),
        validity_check("G2", plan, standing),
    ]
    for tier in plan.workload.tiers:
        checks += [_repeatable(plan, gathered.findings, standing, tier, what) for what in ("ttft_p50", "throughput")]
    engines = {host: HostPack(bundle, "deploy", host) for host in bundle.hosts("engine")}
    volume = (*volume_checks(plan, bundle), *fabric_path_checks(plan, "g2", FABRIC, engines), *rig_checks("G2", plan, bundle, gathered.findings.runs))
    checks += [row for row in volume if isinstance(row, CheckResult)]
    passed = all(check.verdict is Verdict.PASS for check in checks if check.severity is Severity.BLOCKING)
    return GateJudgement(
        checks=tuple(checks),
        claims=claims,
        not_tested=(*not_tested(plan), *(row for row in volume if isinstance(row, dict))),
        figures={**_figures(gathered.findings), "diagnostics": cell_lines(gathered.findings, bundle, standing)},
        risk=_RISK,
        facts={"baseline": frozen(gathered.findings)} if passed else {},
    )


def frozen(data: Findings) -> dict[str, Any]:
    """Return the baseline that G3 is held against: geometric means over the runs and the engine they ran on, with the hash of both."""
    tiers = {}
    for tier in data.plan.workload.tiers:
        stats = [run.stats[tier] for run in data.runs]
        ttft = Effect(tuple((Fraction(1), s.ttft_p50) for s in stats), drop=False).value() + 1
        rate = Effect(tuple((Fraction(1), s.output_per_s) for s in stats), drop=False).value() + 1
        tiers[str(tier)] = {"ttft_p50_ns": int(ttft), "output_tokens_per_s": format(to_decimal(Fraction(rate), 6), "f")}
    engine = {key: data.runs[0].pack.engine.get(key) for key in IDENTITY}
    return {"hash": frozen_hash({"tiers": tiers, "engine": engine}), "tiers": tiers, "engine": engine}


def _repeatable(plan: Plan, data: Findings, standing: Standing, tier: int, what: str) -> CheckResult:
    """Hold the coefficient of variation (sample standard deviation over mean) against its limit, exactly: variance against (limit x mean)^2."""
    limit = plan.g2.repeatability_cv_max
    name = Text("TTFT p50", amid("TTFT p50")) if what == "ttft_p50" else Text("Output throughput", "输出吞吐")
    files = tuple(run.pack.path("records.jsonl") for run in data.runs)
    missing = Text("A run has no statistics at this tier.", "有轮次在该档位没有统计。")
    declared = TTFT_CV if what == "ttft_p50" else THROUGHPUT_CV
    blank = replace(declared.blank(plan, tier=tier, evidence=files), reason=missing, change=lacking(data, tier))
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    stats = [run.stats.get(tier) for run in data.runs]
    values = [s.ttft_p50 if what == "ttft_p50" else s.output_per_s for s in stats if s is not None]
    if len(values) < max(plan.g2.runs, 2):
        return blank
    mean, variance = _moments(values)
    met = variance <= (Fraction(limit) * mean) ** 2
    cv = _root(variance / mean**2, limit, met=met)
    shown = ", ".join(f"{ms(v)} ms" if what == "ttft_p50" else f"{to_decimal(v, 1)} tok/s" for v in values)
    reason = Text("{n} of {k} runs varies by {v} (at most {l}): {s}.", "{k} 轮{n}变异系数 {v}（上限 {l}）：{s}。")
    reason = reason.fill(n=name, k=len(values), v=percent(cv, limit), l=percent(limit), s=shown)
    return replace(blank, change=None, verdict=Verdict.PASS if met else Verdict.FAIL, reason=reason, value=cv, margin=limit - cv)


def _moments(values: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
    mean = sum(values, Fraction(0)) / len(values)
    return mean, sum(((v - mean) ** 2 for v in values), Fraction(0)) / (len(values) - 1)


def _root(square: Fraction, limit: Decimal, *, met: bool) -> Decimal:
    """Return the square root with 10 places, kept on the side of the limit that the exact comparison found."""
    value = to_decimal(Fraction((Decimal(square.numerator) / Decimal(square.denominator)).sqrt()), 10)
    if (value <= limit) == met:
        return value
    return limit if met else limit + Decimal("1e-10")


def _figures(data: Findings) -> dict[str, Any]:
    tiers = {}
    for tier in data.plan.workload.tiers:
        rows = [(run.key, run.stats[tier]) for run in data.runs if tier in run.stats]
        tiers[str(tier)] = {
            "runs": [{"run": key, "ttft_p50_ns": int(s.ttft_p50), "output_tokens_per_s": float(to_decimal(s.output_per_s, 3))} for key, s in rows]
        }
    return {"tiers": tiers}


GATE = GateSpec(id="G2", order=2, title=Text("Single-node baseline", "单机基线"), steps=steps, judge=judge)
