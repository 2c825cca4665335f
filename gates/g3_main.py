"""G3, the main gate: ABBA over whole runs, recompute and placebo; validity claim by claim, then TTFT and throughput tier by tier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gates.bundle import Bundle
from gates.g3.cells import cell_checks
from gates.g3.clients import client_lines
from gates.g3.declared import SLA
from gates.g3.diagnostics import diagnostics
from gates.g3.extension import FIRST_VERDICT, claimed, extension, way_on
from gates.g3.figures import figures
from gates.g3.limits import throughput_gain, ttft_drop
from gates.g3.product import guards, product_checks, recompute_speedup
from gates.g3.told import cached_tokens, store_failures
from gates.model import CheckResult, ClaimResult, GateJudgement, GateSpec, StepSpec
from gates.plan import Plan
from gates.rules import across
from gates.rules.cell_lines import cell_lines
from gates.rules.claim import Findings
from gates.rules.claim_table import TITLES
from gates.rules.completeness import evidence_check, gather, wanted_files
from gates.rules.decision import risk
from gates.rules.outputs import output_identity
from gates.rules.rig import rig_checks
from gates.rules.run_claims import run_claims
from gates.rules.standing import Standing, leave_out, not_tested, validity_check
from gates.steps import judge_step, numbered, report_step, run_step, with_clients, without_repeats
from gates.text import Text

PROMPTS = "g3"  # the set that all arms but the placebo share, in the whole order or in one block
PLACEBO_PROMPTS = "g3-placebo"  # never stored by anybody


def steps(plan: Plan) -> tuple[StepSpec, ...]:
    """Return the steps: the runs in the plan's order (the first of each arm and prompt set stores), the runs beside it, judge, report.

    Every placebo run asks prompts that nobody ever asked; recompute runs ask those of one block after the other, where blocks have their own.
    """
    arms, out = plan.arms, []
    seen: set[tuple[str, str]] = set()
    placebos = sum(arm == "placebo" for arm, _ in arms.beside)
    for n, arm in enumerate(arms.order, 1):
        prompts, ahead = numbered(PROMPTS, arms.block(n)), arms.blocks - arms.block(n)
        if arm == "candidate":
            ahead += placebos  # what these ask is kept on the product's medium as well
        step = run_step(plan, key=f"run-{n}", arm=arm, run_index=n, prompts=prompts, store=(arm, prompts) not in seen, ahead=ahead)
        out.append(step if arm in {run for run, _ in seen} else with_clients(plan, step))
        seen.add((arm, prompts))
    for index, (arm, n) in enumerate(arms.beside, len(arms.order) + 1):
        prompts = numbered(PLACEBO_PROMPTS, n) if arm == "placebo" else numbered(PROMPTS, (n - 1) % arms.blocks + 1)
        step = run_step(plan, key=numbered(arm, n), arm=arm, run_index=index, prompts=prompts, store=arm == "baseline_tuned")
        out.append(step if (arm, prompts) not in seen else without_repeats(step))
        seen.add((arm, prompts))
    return (*out, judge_step(), report_step())


def judge(plan: Plan, bundle: Bundle) -> GateJudgement:
    """Judge a G3 bundle."""
    found = claimed(plan, bundle)
    declared = (*steps(plan), *(extension(plan) if found.pairs else ()))
    gathered = gather(plan, bundle, declared, known=(FIRST_VERDICT,) if found.said else ())
    problems = (*found.problems, *gathered.problems)
    data = replace(gathered.findings, extended_by=found.pairs)
    claims = leave_out(plan, (*run_claims(data), *_cross_claims(plan, data, bundle))) if data.runs else ()
    standing = Standing(not problems, claims)
    checks: list[CheckResult] = [
        evidence_check("G3", plan, problems, len(wanted_files(bundle, declared)), gathered.findings.runs),
        validity_check("G3", plan, standing),
        *product_checks(data, standing),
    ]
    for tier in plan.workload.tiers:
        checks += [ttft_drop(plan, data, standing, tier), throughput_gain(plan, data, standing, tier), *guards(plan, data, standing, tier)]
    if plan.g3.optional.get("recompute_speedup") == "advisory" and "recompute" in plan.arms.once:
        checks += [recompute_speedup(data, standing, tier) for tier in plan.workload.tiers]
    cells = (
        *cell_checks(data, bundle, standing),
        cached_tokens(data, standing),
        store_failures(data, standing),
        *rig_checks("G3", plan, bundle, data.runs),
    )
    checks += [row for row in cells if isinstance(row, CheckResult)]
    untold = tuple(row for row in cells if isinstance(row, dict))
    beside = [*diagnostics(plan, data, standing), *client_lines(plan, data, bundle, standing), *cell_lines(data, bundle, standing)]
    return GateJudgement(
        checks=tuple(checks),
        claims=claims,
        not_tested=(*not_tested(plan), *untold, *_not_measured(plan, data.pairs)),
        figures={**figures(plan, data, checks), "diagnostics": beside},
        risk=risk(plan.decision, looks=2 if found.pairs else 1),
        pairs=data.pairs,
    )


def _cross_claims(plan: Plan, data: Findings, bundle: Bundle) -> tuple[ClaimResult, ...]:
    """Return the claims that compare arms with each other, and with G2."""
    identity = tuple(output_identity(data, arm) for arm in data.arms if arm != "placebo") if "recompute" in plan.arms.once else ()
    once = (across.placebo(data),) if "placebo" in plan.arms.once else ()
    replayed = (across.replay(data),) if data.pairs > 1 else ()
    agree = (across.baselines_agree(data),) if data.pairs > 1 else ()
    return (*identity, *once, *replayed, *agree, across.g2_agreement(data, bundle.inputs.get("g2_baseline")), across.gain_explained(data))


def _not_measured(plan: Plan, pairs: int) -> tuple[dict[str, Any], ...]:
    out: list[dict[str, Any]] = []
    if plan.g3.sla.ttft_p50 is None:
        out.append({"check": SLA.id, "title": Text("SLA: TTFT p50", "SLA：TTFT p50").json(), "reason": Text("No SLA agreed.", "未约定 SLA。").json()})
    if pairs == 1:
        told = Text("The plan has one run pair, so runs cannot be compared with each other.", "计划仅有一个轮次对，轮次间无法比较。")
        out.append({"claim": "baselines_agree", "title": TITLES["baselines_agree"].json(), "reason": told.json(), "agreed": False})
    return tuple(out)


GATE = GateSpec(id="G3", order=3, title=Text("Main gate", "主门禁"), steps=steps, judge=judge, extension=extension, way_on=way_on)
