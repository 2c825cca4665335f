"""G4, the 72 h stability gate: the product under steady load, judged for errors, restarts, drift, leaks and fatal counters."""

from __future__ import annotations

from gates.bundle import Bundle
from gates.model import GateJudgement, GateSpec, StepSpec
from gates.plan import Plan
from gates.steps import judge_step, report_step, soak_step
from gates.text import Text


def steps(plan: Plan) -> tuple[StepSpec, ...]:
    """Return the steps: the soak of the candidate, judge, report."""
    return (soak_step(plan), judge_step(), report_step())


def judge(plan: Plan, bundle: Bundle) -> GateJudgement:
    """Judge a G4 bundle (gates.g4.judgement: what it checks, in order)."""
    from gates.g4.judgement import judge as judgement  # works on columns: only who judges a soak pays for numpy

    return judgement(plan, bundle, steps(plan))


GATE = GateSpec(id="G4", order=4, title=Text("72 h stability", "72h 稳定性"), steps=steps, judge=judge)
