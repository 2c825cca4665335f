"""What the measuring gates' steps have in common: a run job, a soak job, the judgement and the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from gates.model import ATTENDED, StepKind, StepSpec
from gates.text import Text, amid

if TYPE_CHECKING:
    from gates.plan import Plan

RUN_PACK = (
    "job.json",
    "phases.jsonl",
    "records.jsonl",
    "coldness.jsonl",
    "counters.jsonl",
    "engine.json",
    "arm.json",
    "client.json",
    "workload.json",
    "exit.json",
    "pack.json",
)
CELLS = "cells.jsonl"
NEVER_IN_A_REHEARSAL = (StepKind.JUDGE, StepKind.REPORT)
SOAK_PACK = (*RUN_PACK, "telemetry.jsonl", "events.jsonl")
MEASURED_ON = "loadgen"  # the inventory group whose hosts run the detached job
ATTEND_PACK = ("job.json", "started", "asked.jsonl", "exit.json", "pack.json")  # of an engine host that is driven from elsewhere

_ARMS = {
    "baseline": Text("baseline", "基线"),
    "candidate": Text("candidate", "被测产品"),
    "recompute": Text("recompute", "重算"),
    "placebo": Text("placebo", "安慰剂"),
    "baseline_tuned": Text("baseline_tuned", "基线（同软件设置）"),
}
_FLOOR_S = 600  # a step on a scaled clock still needs the real time of processes and disks


def arm_name(arm: str) -> Text:
    """Return the name of an arm for people."""
    return _ARMS.get(arm, Text(arm, arm))


def run_name(key: str) -> Text:
    """Return the name of a run for people: of those that bear their arm's name (`placebo`, `recompute-2`) the arm's; all others have their own."""
    name, dash, n = key.partition("-")
    if name == "soak":
        return Text(key, "稳定性运行")
    return Text(key, f"{_ARMS[name].zh}{dash}{n}") if name in _ARMS else Text(key, key)


def during(key: str) -> Text:
    """Return the name of a run as it stands before a Chinese word: with a space behind it where it ends in a letter or a digit."""
    name = run_name(key)
    return Text(name.en, amid(name.zh).lstrip())


def numbered(name: str, n: int) -> str:
    """Return the name of the n-th thing of a kind (from 1): the first keeps the plain name, e.g. `placebo`, `placebo-2`."""
    return name if n == 1 else f"{name}-{n}"


def run_step(plan: Plan, *, key: str, arm: str, run_index: int, prompts: str, store: bool, ahead: int = 0) -> StepSpec:
    """Return the step of one run: one pass of one arm over all tiers, done by a detached job on the target.

    `prompts` names the prompt set: prompts derive from the attempt's seed and this name, so runs that share it ask the same questions.
    `ahead`: how many further sets later runs will leave on the same medium, so that a medium too small for all is refused before the first.
    """
    work = plan.workload
    return StepSpec(
        key=key,
        kind=StepKind.JOB,
        title=Text("Run {n}: {arm}", "第 {n} 轮：{arm}").fill(n=run_index, arm=arm_name(arm)),
        playbook="job_start.yml",
        params={
            "kind": "run",
            "arm": arm,
            "run_index": run_index,
            "set": prompts,
            "store": store and plan.arms.recovers(arm),
            "cool": True,
            # The first tier's prompts are asked once more; a short tier has fewer of them than the plan would like.
            "repeat": min(work.identity_repeats, work.requests(work.tiers[0])) if arm == "recompute" else 0,
            "tiers": [{"tier": tier, "requests": work.requests(tier)} for tier in work.tiers],
            "context_tokens": work.context_tokens,
            "suffix_tokens": work.suffix_tokens,
            "output_tokens": work.output_tokens,
            "warmup": work.warmup_requests,
            "canary": plan.arms.recovers(arm),
            **({"ahead": ahead} if ahead and store and plan.arms.recovers(arm) else {}),
            **({"cells": list(work.cells)} if work.cells else {}),
        },
        expects={MEASURED_ON: (*RUN_PACK, CELLS) if work.cells else RUN_PACK, ATTENDED: ATTEND_PACK},
        changes_target=True,
        measured=True,
        timeout_s=_timeout(plan, work.run_timeout.base),
    )


def with_clients(plan: Plan, step: StepSpec) -> StepSpec:
    """Return the step of a run behind whose measurement the plan's third-party clients drive the engine; the same step where it has none."""
    if not plan.workload.clients:
        return step
    asked = [{"tool": client.tool, "tier": client.tier, "requests": client.requests} for client in plan.workload.clients]
    names = tuple(dict.fromkeys((*step.expects[MEASURED_ON], CELLS)))
    return replace(step, params={**step.params, "clients": asked}, expects={**step.expects, MEASURED_ON: names})


def without_repeats(step: StepSpec) -> StepSpec:
    """Return the step of a run that answers no prompt twice: one run over a prompt set tells the noise floor of its outputs."""
    return replace(step, params={**step.params, "repeat": 0})


def soak_step(plan: Plan) -> StepSpec:
    """Return the step of the soak. `seconds` is the clock's time: the plan's duration divided by rig.time_scale."""
    work, seconds = plan.workload, plan.scaled_seconds(plan.g4.duration.base)
    whole = math.ceil(seconds)
    return StepSpec(
        key="soak",
        kind=StepKind.JOB,
        title=Text("Soak: {duration}", "稳定性运行：{duration}").fill(duration=plan.g4.duration),
        playbook="job_start.yml",
        params={
            "kind": "soak",
            "arm": "candidate",
            "run_index": 1,
            "set": "g4",
            "store": True,
            "cool": True,
            "repeat": 0,
            "seconds": whole,
            "tier": plan.g4.tier,
            "tiers": [{"tier": plan.g4.tier, "requests": work.requests(plan.g4.tier)}],
            "telemetry_s": _telemetry_s(plan),
            "sentinel": {"every_s": float(plan.scaled_seconds(plan.g4.window.base)), "prefixes": plan.g4.tier},
            **_injections(plan),
            "context_tokens": work.context_tokens,
            "suffix_tokens": work.suffix_tokens,
            "output_tokens": work.output_tokens,
            "warmup": work.warmup_requests,
            "canary": True,
        },
        expects={MEASURED_ON: SOAK_PACK, ATTENDED: ATTEND_PACK},
        changes_target=True,
        measured=True,
        timeout_s=whole + _timeout(plan, work.run_timeout.base),
    )


def _injections(plan: Plan) -> dict[str, list[dict[str, object]]]:
    """Return the planned disturbances in the clock's seconds; nothing where there is none."""
    rows: list[dict[str, object]] = [
        {"label": i.label, "action": i.action, "at_s": float(plan.scaled_seconds(i.at.base)), "seconds": float(plan.scaled_seconds(i.lasts.base))}
        for i in plan.g4.injections
    ]
    return {"injections": rows} if rows else {}


def deploy_step() -> StepSpec:
    """Return the step that installs engine and probe."""
    return StepSpec(
        key="deploy",
        kind=StepKind.PLAYBOOK,
        title=Text("Deploy engine and probe", "部署引擎与探针"),
        playbook="deploy.yml",
        expects={"engine": ("commands.json", "host.json")},
        changes_target=True,
        timeout_s=3600,
    )


def judge_step(key: str = "judge") -> StepSpec:
    """Return the step that judges the attempt from its evidence."""
    return StepSpec(key=key, kind=StepKind.JUDGE, title=Text("Judge the evidence", "依据证据判定"))


def report_step(key: str = "report") -> StepSpec:
    """Return the step that writes the report in both languages."""
    return StepSpec(key=key, kind=StepKind.REPORT, title=Text("Write the report", "生成报告"))


def in_rehearsal(steps: Sequence[StepSpec]) -> tuple[StepSpec, ...]:
    """Return what of a gate's steps a rehearsal takes: it is never judged and gets no report.

    It may come before the gate that deploys (G2), so whatever it measures on is deployed first; where that was done, nothing changes.
    """
    kept = tuple(step for step in steps if step.kind not in NEVER_IN_A_REHEARSAL)
    measures = any(step.kind is StepKind.JOB for step in kept)
    return (deploy_step(), *kept) if measures and deploy_step().key not in {step.key for step in kept} else kept


def telemetry_period_ns(plan: Plan) -> int:
    """Return the wanted nanoseconds of the clock between telemetry samples (what coverage is counted against)."""
    return int(Decimal(str(_telemetry_s(plan))) * 10**9)


def _telemetry_s(plan: Plan) -> float:
    # Every 5 s, or five samples within the largest gap that the plan allows, but never so often that the sampler loads the target.
    wanted = float(plan.scaled_seconds(plan.g4.gap_max.base)) / 5
    return max(0.05, min(5.0, round(wanted, 3)))


def _timeout(plan: Plan, seconds: Decimal) -> int:
    return max(_FLOOR_S, math.ceil(plan.scaled_seconds(seconds)))
