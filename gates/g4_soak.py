"""G4, the 72 h stability gate: the product under steady load, judged for errors, restarts, drift, leaks and fatal counters."""

from __future__ import annotations

from typing import Any

from gates.bundle import Bundle
from gates.g4.checks import Soak, drift, duration, engine_restarts, error_rate, injection_checks, soak_clock
from gates.g4.series import clock_of, injections, slices
from gates.g4.telemetry import coverage, fatal_counters, leak, rss_by_slice, tier_exercised
from gates.model import CheckResult, GateJudgement, GateSpec, Problem, StepSpec, Verdict
from gates.plan import Plan
from gates.readers.strict import count
from gates.rules import client
from gates.rules.claim import Run
from gates.rules.completeness import evidence_check, gather, wanted_files
from gates.rules.estimates import ms, to_decimal
from gates.rules.standing import Standing, leave_out, not_tested, validity_check
from gates.steps import judge_step, report_step, soak_step
from gates.text import Text

_RISK = Text(
    "Decision rule: each figure against its limit. A soak without a fault shows that the product can run so long, not that it always will.",
    "判定规则：各项数值直接与限值比较。一次无故障的稳定性运行表明产品能够持续运行，不保证永不故障。",
)


def steps(plan: Plan) -> tuple[StepSpec, ...]:
    """Return the steps: the soak of the candidate, judge, report."""
    return (soak_step(plan), judge_step(), report_step())


def judge(plan: Plan, bundle: Bundle) -> GateJudgement:
    """Judge a G4 bundle."""
    declared = steps(plan)
    gathered = gather(plan, bundle, declared)
    data, problems = gathered.findings, list(gathered.problems)
    soak = _soak(plan, bundle, data.runs[0], problems) if data.runs else None
    found = (*(tier_exercised(run) for run in data.runs), *(f(data, arm) for arm in data.arms for f in (client.client_healthy, client.calibration)))
    claims = leave_out(plan, found)
    standing = Standing(not problems, claims)
    checks: list[CheckResult] = [evidence_check("G4", problems, len(wanted_files(bundle, declared))), validity_check("G4", standing)]
    if soak is None:
        checks.append(
            CheckResult(
                "g4.duration",
                Text("Soak duration", "稳定性运行时长"),
                Verdict.INCONCLUSIVE,
                Text("There is no soak to judge.", "没有可判定的稳定性运行。"),
            )
        )
        return GateJudgement(checks=tuple(checks), claims=claims, not_tested=not_tested(plan), risk=_RISK)
    checks += [
        duration(soak, standing),
        soak_clock(soak, standing),
        engine_restarts(soak, standing),
        error_rate(soak, standing),
        *drift(soak, standing),
        leak(soak, standing),
        *coverage(soak, standing),
        *fatal_counters(soak, standing),
        *injection_checks(soak, standing),
    ]
    return GateJudgement(checks=tuple(checks), claims=claims, not_tested=not_tested(plan), figures=_figures(soak), risk=_RISK)


def _soak(plan: Plan, bundle: Bundle, run: Run, problems: list[Problem]) -> Soak | None:
    """Return what the checks are made from, or None after recording why not."""
    clock, labelled = clock_of(plan, run.pack), injections(bundle.inputs)
    if labelled is None:
        text = Text(
            "evidence/inputs.json: a labelled injection lacks its times, boot or label.", "evidence/inputs.json：某项注入缺少时间、开机标识或标签。"
        )
        problems.append(Problem("injections", text, "evidence/inputs.json"))
    if clock is None or labelled is None:
        text = Text("{p}: no request of the soak lies within its phase.", "{p}：没有处于稳定性阶段内的请求。").fill(p=run.pack.path("records.jsonl"))
        problems.append(Problem("no_soak", text, run.pack.path("records.jsonl")))
        return None
    requests = tuple(r for r in run.pack.of("soak") if r.boot_id == clock.boot_id)
    return Soak(plan, bundle, run.pack, clock, requests, slices(plan, requests, clock), labelled)


def _figures(soak: Soak) -> dict[str, Any]:
    """Return the chart over time: one point a window, hours of the plan."""
    rss = rss_by_slice(soak)
    rows = [
        {
            "hour": round(soak.clock.hour(s.start_ns), 3),
            "requests": s.requests,
            "errors": s.errors,
            "ttft_p50_ms": None if s.ttft_p50 is None else float(ms(s.ttft_p50)),
            "output_tokens_per_s": float(to_decimal(s.output_per_s, 3)),
            "rss_bytes": rss.get(s.index),
        }
        for s in soak.slices
    ]
    g4 = soak.plan.g4
    limits = {
        "error_rate_max": format(g4.error_rate_max, "f"),
        "hourly_drift_max": format(g4.hourly_drift_max, "f"),
        "excursion_max": format(g4.excursion_max, "f"),
        "duration_h": float(g4.duration.base / 3600),
        "window_h": float(g4.window.base / 3600),
    }
    events = [
        {"hour": round(soak.clock.hour(count(e.get("mono_ns")) or soak.clock.start_ns), 3), "kind": str(e.get("kind")), "detail": e.get("detail")}
        for e in soak.pack.events[:200]
    ]
    return {"soak": rows, "limits": limits, "events": events}


GATE = GateSpec(id="G4", order=4, title=Text("72 h stability", "72h 稳定性"), steps=steps, judge=judge)
