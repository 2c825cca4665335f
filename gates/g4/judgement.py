"""The judgement of the soak: evidence in columns, the timeline, the checks in the order in which people read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gates.bundle import INPUTS, Bundle
from gates.g4.account import littles_law, requests_accounted
from gates.g4.by_host import over_hosts
from gates.g4.checks import duration, engine_restarts, error_budget, error_rate, soak_clock
from gates.g4.declared import DURATION
from gates.g4.drift import drift
from gates.g4.hits import hits_trend, watched
from gates.g4.injected import injection_checks
from gates.g4.kernel_log import kernel_log_check
from gates.g4.own_word import not_in_order, unprepared
from gates.g4.parts import part_checks
from gates.g4.recovery import recovery
from gates.g4.sentinel import sentinel, windows
from gates.g4.series import Soak, slices
from gates.g4.telemetry import coverage, fatal_counters, handles, leak, rss_by_slice
from gates.g4.tier import tier_exercised
from gates.g4.timeline import Injection, boots_in_order, injections, timeline
from gates.g4.work import equal_work, store_complete
from gates.model import CheckResult, ClaimResult, GateJudgement, Problem, StepSpec
from gates.plan import Plan
from gates.readers.places import hosts_of
from gates.readers.strict import count
from gates.rules import client
from gates.rules.claim import Run
from gates.rules.completeness import evidence_check, gather, wanted_files
from gates.rules.estimates import ms, to_decimal
from gates.rules.medium import on_its_medium
from gates.rules.rig import rig_checks
from gates.rules.standing import Standing, counters_left_out, leave_out, not_tested, validity_check
from gates.text import Text

_RISK = Text(
    "Decision rule: each figure against its limit. A soak without a fault shows that the product can run so long, not that it always will.",
    "判定规则：各项数值直接与限值比较。一次无故障的稳定性运行表明产品能够持续运行，不保证永不故障。",
)

_ROUTINE = ("sentinel", "injection_begins")  # they come as planned and mark nothing in a chart


def judge(plan: Plan, bundle: Bundle, declared: Sequence[StepSpec]) -> GateJudgement:
    """Judge a G4 bundle against the steps that the gate declares."""
    gathered = gather(plan, bundle, declared)
    data, problems = gathered.findings, list(gathered.problems)
    problems += [problem for run in data.runs for problem in unprepared(plan, run)]
    soak = _soak(plan, bundle, data.runs[0], problems) if data.runs else None
    found: tuple[ClaimResult, ...] = (
        *(tier_exercised(plan, run) for run in data.runs),
        *(f(data, arm) for arm in data.arms for f in (on_its_medium, store_complete, equal_work, client.client_healthy, client.calibration)),
    )
    if soak is not None:
        found = (*found, *(f(soak, run) for f in (requests_accounted, littles_law) for run in data.runs))
    claims = leave_out(plan, found)
    standing = Standing(not problems, claims)
    untold = (*not_tested(plan), *counters_left_out(plan))
    checks: list[CheckResult] = [
        evidence_check("G4", plan, [*problems, *(p for run in data.runs for p in not_in_order(run))], len(wanted_files(bundle, declared)), data.runs),
        validity_check("G4", plan, standing),
    ]
    if soak is None:
        nothing = Text("There is no soak to judge.", "没有可判定的稳定性运行。")
        change = Text("a soak whose requests and samples were brought whole would tell", "完整带回请求与样本的稳定性运行方可判定")
        checks.append(replace(DURATION.blank(plan), reason=nothing, change=change))
        return GateJudgement(checks=tuple(checks), claims=claims, not_tested=untold, risk=_RISK)
    rows: list[CheckResult | dict[str, Any]] = [
        duration(soak, standing),
        soak_clock(soak, standing),
        *over_hosts(soak, lambda one: [engine_restarts(one, standing)]),
        *over_hosts(soak, lambda one: [error_rate(one, standing)], together=True),
        *recovery(plan, standing),
        *error_budget(soak, standing),
        *over_hosts(soak, lambda one: drift(one, standing), together=True),
        *over_hosts(soak, lambda one: [hits_trend(one, standing), leak(one, standing), *handles(one, standing), *coverage(one, standing)]),
        *over_hosts(soak, lambda one: [*fatal_counters(one, standing), *watched(one, standing), sentinel(one, standing)]),
        *injection_checks(soak, standing),
        kernel_log_check(soak, standing),  # of all hosts by itself
        *over_hosts(soak, part_checks),
        *rig_checks("G4", plan, bundle, data.runs),
    ]
    checks += [row for row in rows if isinstance(row, CheckResult)]
    untold = (*untold, *(row for row in rows if isinstance(row, dict)))
    return GateJudgement(checks=tuple(checks), claims=claims, not_tested=untold, figures=_figures(soak), risk=_RISK)


def _soak(plan: Plan, bundle: Bundle, run: Run, problems: list[Problem]) -> Soak | None:
    """Return what the checks are made from, or None after recording why not."""
    labelled, path = injections(bundle.inputs), run.pack.path("records.jsonl")
    if labelled is None:
        text = Text("{p}: a labelled injection lacks its times, boot or label.", "{p}：某项注入缺少时间、开机标识或标签。").fill(p=INPUTS)
        problems.append(Problem("injections", text, INPUTS))
    problems += _not_agreed(plan, labelled or ())
    records, telemetry = run.pack.records, run.pack.samples
    if records is None or telemetry is None or not len(records) or labelled is None or not _within_phase(run):
        text = Text("{p}: no request of the soak lies within its phase.", "{p}：没有处于稳定性阶段内的请求。").fill(p=path)
        problems.append(Problem("no_soak", text, path))
        return None
    for name, boots, column in (("records.jsonl", records.boots, records.boot), ("telemetry.jsonl", telemetry.boots, telemetry.boot)):
        if len(boots) > 1 and (np.diff(column) < 0).any():
            text = Text("{p}: a boot of the host comes back after another; no host does that.", "{p}：某次开机在另一次开机之后再次出现，不合常理。")
            problems.append(Problem("boots", text.fill(p=run.pack.path(name)), run.pack.path(name)))
    line = timeline(plan, records, telemetry, bundle.inputs, labelled, hosts_of(run.pack))
    return Soak(plan, bundle, run.pack, line, records, telemetry, slices(plan, records, line), labelled)


def _not_agreed(plan: Plan, labelled: Sequence[Injection]) -> list[Problem]:
    """Return a problem for each label with more injections on record than the plan has: only what was agreed beforehand excuses anything."""
    agreed, out = Counter(planned.label for planned in plan.g4.injections), []
    for label, number in sorted(Counter(found.label for found in labelled).items()):
        if not agreed[label]:
            text = Text("{p} names the injection {l}, which the plan does not.", "{p} 所列的注入“{l}”不在计划中。")
        else:
            text = Text("{p} has the injection {l} {n} times; the plan has it {a} times.", "{p} 所列的注入“{l}”有 {n} 次；计划中为 {a} 次。")
        if number > agreed[label]:
            out.append(Problem("injections", text.fill(p=INPUTS, l=label, n=number, a=agreed[label]), INPUTS))
    return out


def _within_phase(run: Run) -> bool:
    """Tell whether the load of a soak in one boot lies within its phase, as the job recorded it."""
    records, telemetry = run.pack.records, run.pack.samples
    phase = next((p for p in run.pack.phases if p.get("phase") == "soak"), None)
    if records is None or telemetry is None or phase is None:
        return False
    if len(boots_in_order(records, telemetry)) > 1:
        return True
    begun, ended = count(phase.get("started_ns")), count(phase.get("ended_ns"))
    return begun is not None and ended is not None and begun <= int(records.sent.min()) and int(records.end.max()) <= ended


def _figures(soak: Soak) -> dict[str, Any]:
    """Return the chart over time, one point a window in hours of the plan, and everything that broke the run with its cause."""
    rss = rss_by_slice(soak)
    rows = [
        {
            "hour": round(float(soak.line.hour(s.start_ns)), 3),
            "requests": s.requests,
            "errors": s.errors,
            "ttft_p50_ms": None if s.ttft_p50 is None else float(ms(s.ttft_p50)),
            "ttft_p99_ms": None if s.ttft_p99 is None else float(ms(s.ttft_p99)),
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
        {
            "hour": round(float(soak.line.hour(count(e.get("mono_ns")) or soak.line.start_ns, str(e.get("boot_id")))), 3),
            "kind": str(e.get("kind")),
            "detail": e.get("detail"),
        }
        for e in [e for e in soak.pack.events if e.get("kind") not in _ROUTINE][:200]
    ]
    return {"soak": rows, "limits": limits, "events": events, "sentinel": windows(soak), "breaks": [b.json() for b in soak.line.breaks[:200]]}
