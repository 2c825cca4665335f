"""The steps of an attempt, from the gate's declaration to rows."""

from __future__ import annotations

from dataclasses import asdict

from app.attempts.models import Step
from app.kit.db import new_id
from gates.canonical import plain
from gates.model import StepKind, StepSpec
from gates.plan import Plan

NEVER_IN_A_REHEARSAL = (StepKind.JUDGE, StepKind.REPORT)


def steps_for(plan: Plan, gate: str, rehearsal: bool) -> list[StepSpec]:
    """Return the steps of an attempt as the gate declares them; a rehearsal is never judged and gets no report."""
    from gates.registry import GATES  # the gates bring numpy and scipy: only who starts one pays for them

    return [spec for spec in GATES[gate].steps(plan) if not (rehearsal and spec.kind in NEVER_IN_A_REHEARSAL)]


def extension_for(plan: Plan, gate: str) -> list[StepSpec]:
    """Return the steps that extend an inconclusive attempt; none where the gate or the plan knows no extension."""
    from gates.registry import GATES  # as above

    declared = GATES[gate].extension
    return list(declared(plan)) if declared else []


def step_row(attempt_id: str, position: int, spec: StepSpec) -> Step:
    """Return the row of a declared step; `spec` holds the declaration as JSON."""
    declared = plain({key: value for key, value in asdict(spec).items() if key != "title"})
    return Step(
        id=new_id(),
        attempt_id=attempt_id,
        position=position,
        key=spec.key,
        kind=str(spec.kind),
        title=spec.title.json(),
        spec={**declared, "kind": str(spec.kind), "title": spec.title.json()},
        status="pending",
        try_no=0,
    )
