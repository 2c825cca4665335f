"""The steps of an attempt, from the gate's declaration to rows."""

from __future__ import annotations

from dataclasses import asdict

from app.attempts.models import Step
from app.kit.db import new_id
from gates.canonical import plain
from gates.model import StepSpec
from gates.plan import Plan
from gates.steps import in_rehearsal


def steps_for(plan: Plan, gate: str, rehearsal: bool) -> list[StepSpec]:
    """Return the steps of an attempt as the gate declares them, or those of a rehearsal."""
    from gates.registry import GATES  # the gates bring numpy and scipy: only who starts one pays for them

    declared = GATES[gate].steps(plan)
    return list(in_rehearsal(declared) if rehearsal else declared)


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
