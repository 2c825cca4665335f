"""The evidence of whole attempts, one function a gate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

from gates import g2_baseline, g3_main, g4_soak
from gates.canonical import canonical_bytes, sha256_of
from gates.g3.extension import FIRST_VERDICT, extension
from gates.model import StepKind, StepSpec
from gates.plan import Plan
from gates.rules.across import frozen_hash
from gates.rules.engine import IDENTITY
from tests.bundles.evidence import BOOT, HOST, Evidence, dumped
from tests.bundles.job import MODEL_LABELS, SERVED, WALL
from tests.bundles.jobs import Run, Soak
from tests.bundles.kernel import calm_log
from tests.bundles.truth import Truth, small_plan, soak_plan

_made: dict[tuple[str, Truth | None, str], Evidence] = {}


def _made_once(make: Callable[..., Evidence]) -> Callable[..., Evidence]:
    """Let the same truth under the same plan be drawn once: what a test edits is its own copy."""

    @wraps(make)
    def evidence(truth: Truth | None = None, plan: Plan | None = None, **more: Any) -> Evidence:
        key = (make.__name__, truth, f"{plan} {more}")
        if key not in _made:
            if len(_made) >= 32:
                _made.pop(next(iter(_made)))
            _made[key] = make(truth, plan, **more)
        return replace(_made[key], files=dict(_made[key].files), attempt=dict(_made[key].attempt))

    return evidence


@_made_once
def g2_evidence(truth: Truth | None = None, plan: Plan | None = None) -> Evidence:
    """Return the evidence of a G2 attempt."""
    evidence = _runs("G2", truth or Truth(), plan or small_plan(), g2_baseline.steps)
    evidence.files[evidence.path("deploy", "host.json")] = dumped({"host": HOST, "boot_id": BOOT, "kernel": "6.1", "python": "3.11.7"})
    evidence.files[evidence.path("deploy", "commands.json")] = dumped([])
    return evidence


@_made_once
def g3_evidence(truth: Truth | None = None, plan: Plan | None = None) -> Evidence:
    """Return the evidence of a G3 attempt, with a frozen G2 baseline that agrees."""
    truth, plan = truth or Truth(), plan or small_plan()
    evidence = _runs("G3", truth, plan, g3_main.steps)
    tiers = {}
    for tier in plan.workload.tiers:
        e2e = (truth.baseline_ms + truth.decode_ms) * tier / 1000
        tiers[str(tier)] = {
            "ttft_p50_ns": int(truth.baseline_ms * tier * 10**6),
            "output_tokens_per_s": f"{tier * plan.workload.output_tokens / e2e:.6f}",
        }
    engine = {key: evidence.read("run-1", "engine.json")[key] for key in IDENTITY}
    frozen = {"tiers": tiers, "engine": engine}
    return evidence.inputs(lambda d: d.update(g2_baseline={"hash": frozen_hash(frozen), **frozen}))


def extended_evidence(truth: Truth, plan: Plan, first: Mapping[str, Any]) -> Evidence:
    """Return the evidence of a G3 attempt that was extended after the verdict `first`."""
    evidence = g3_evidence(truth, plan)
    _write_runs(evidence, truth, [*g3_main.steps(plan), *extension(plan)])
    evidence.files[FIRST_VERDICT] = canonical_bytes(first)
    told = {"pairs": plan.g3.extension_pairs, "from_verdict": sha256_of(first), "at": "2026-12-01T08:00:00Z"}
    return evidence.inputs(lambda d: d.update(extension=told))


@_made_once
def g4_evidence(truth: Truth | None = None, plan: Plan | None = None, *, hours: float | None = None) -> Evidence:
    """Return the evidence of a G4 attempt on a scaled clock: a day of the plan as 24 s unless the plan says otherwise."""
    truth = truth or Truth()
    plan = plan or soak_plan()
    evidence = Evidence("G4", plan, simulated=plan.rig.simulated)
    evidence.files["evidence/inputs.json"] = _inputs(plan)
    spec = next(s for s in g4_soak.steps(plan) if s.kind is StepKind.JOB)
    Soak(evidence, spec, truth, hours).write()
    return calm_log(evidence)


def record_injection(evidence: Evidence, label: str, from_ns: int, to_ns: int, boot_id: str = BOOT, **said: Any) -> Evidence:
    """Put a labelled injection on record as the service does: the probe's event, and its row in the inputs. `said` goes into the event alone."""
    row = {"label": label, "from_ns": from_ns, "to_ns": to_ns, "boot_id": boot_id}
    detail = {**row, "begin_exit": 0, "end_exit": 0, **said}
    event = {"wall_ns": WALL + to_ns, "mono_ns": to_ns, "boot_id": boot_id, "kind": "injection", "detail": detail}
    evidence.lines("soak", "events.jsonl", lambda rows: [*rows, event], renumber=True)
    return evidence.inputs(lambda d: d["injections"].append(row))


def counted_again(evidence: Evidence) -> Evidence:
    """Let the engine have counted what a soak's journal says: requests, prompt tokens and output tokens, around the load and in its samples."""
    soak = [row for row in evidence.rows("soak", "records.jsonl") if row["phase"] == "soak"]
    ends = sorted(row["end_ns"] for row in soak)
    names = {
        SERVED: len(soak),
        f"vllm:prompt_tokens_total{MODEL_LABELS}": sum(row["prompt_tokens_sent"] for row in soak),
        f"vllm:generation_tokens_total{MODEL_LABELS}": sum(row["max_tokens"] for row in soak),
    }
    before = next(row["metrics"] for row in evidence.rows("soak", "counters.jsonl") if (row["when"], row["phase"]) == ("before", "soak"))
    base = {name: int(float(before[name])) for name in names}

    def around(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if (row["when"], row["phase"]) == ("after", "soak"):
                row["metrics"] |= {name: str(base[name] + grown) for name, grown in names.items()}

    def samples(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["metrics"][SERVED] = str(base[SERVED] + bisect_right(ends, row["mono_ns"]))

    return told_again(evidence.lines("soak", "counters.jsonl", around).lines("soak", "telemetry.jsonl", samples))


def told_again(evidence: Evidence) -> Evidence:
    """Let the driver have told of just those requests that a soak's journal has: at the end of each boot's load, by its sentinel, of its answers.

    And let the kernels' logs be of that load, and tell nothing. The rotation begins anew in each boot.
    """
    spec = next(s for s in g4_soak.steps(evidence.plan) if s.kind is StepKind.JOB)
    rotating = sum(int(t["requests"]) for t in spec.params["tiers"])
    turns: dict[str, list[tuple[int, int]]] = {}

    def in_turn(rows: list[dict[str, Any]]) -> None:
        for row in sorted((r for r in rows if r["phase"] == "soak" and r["prompt"] < rotating), key=lambda r: r["sent_ns"]):
            before, this = turns.setdefault(row["boot_id"], []), (row["sent_ns"], row["prompt"])
            if this not in before[-1:]:  # the same request twice keeps one number
                before.append(this)
            row["prompt"] = (len(before) - 1) % rotating

    evidence.lines("soak", "records.jsonl", in_turn)
    soak = [row for row in evidence.rows("soak", "records.jsonl") if row["phase"] == "soak"]

    def ends(rows: list[dict[str, Any]]) -> None:
        for row in (row for row in rows if row["phase"] == "soak"):
            row["detail"]["requests"] = sum(r["boot_id"] == row["boot_id"] for r in soak)

    def windows(rows: list[dict[str, Any]]) -> None:
        for row in (row for row in rows if row["kind"] == "sentinel"):
            mine = [r for r in soak if r["prompt"] >= rotating]
            row["boot_id"] = mine[0]["boot_id"] if mine else row["boot_id"]
            row["detail"].update(requests=len(mine), failed=sum(r["error"] is not None for r in mine))

    def answers(client: dict[str, Any]) -> None:
        last = evidence.rows("soak", "phases.jsonl")[-1]["boot_id"]
        told = sum(r["error"] is None for r in soak if r["boot_id"] == last)
        client["server_stamps"] = {"answers": told, "stamped": told if client["server_stamps"]["stamped"] else 0}

    evidence.lines("soak", "phases.jsonl", ends).lines("soak", "events.jsonl", windows).json("soak", "client.json", answers)
    return calm_log(evidence)


def _runs(gate: str, truth: Truth, plan: Plan, steps: Callable[[Plan], tuple[StepSpec, ...]]) -> Evidence:
    evidence = Evidence(gate, plan, simulated=plan.rig.simulated)
    evidence.files["evidence/inputs.json"] = _inputs(plan)
    _write_runs(evidence, truth, steps(plan))
    return evidence


def _write_runs(evidence: Evidence, truth: Truth, steps: Sequence[StepSpec]) -> None:
    """Write the packs of all runs, each arm's runs with what is true of each."""
    count: dict[str, int] = {}
    for spec in (spec for spec in steps if spec.kind is StepKind.JOB):
        arm = spec.params["arm"]
        number = count[arm] = count.get(arm, -1) + 1
        factor, here = 1.0, truth
        if arm == "baseline" and number < len(truth.baseline_runs):
            factor = truth.baseline_runs[number]
        if arm == "candidate" and number < len(truth.candidate_drops):
            here = replace(truth, drop=truth.candidate_drops[number])
        Run(evidence, spec, here, factor).write()


def _inputs(plan: Plan) -> bytes:
    return dumped(
        {
            "schema": 1,
            "engagement": {"code": "TEST", "customer": "甲方", "vendor": "乙方", "site": "机房", "contract": "HT-1"},
            "order": {},
            "packing_list": [],
            "hosts": {"engine": [HOST], "loadgen": [HOST], "storage": ["array01"]},
            "simulated": plan.rig.simulated,
            "g2_baseline": None,
            "injections": [],
            "rig_causes": [],
            "interruption": None,
        }
    )
