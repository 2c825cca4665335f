"""Which handler has the attempt's next move. The order of the questions is the rule; everything else stands in steps/."""

from __future__ import annotations

from collections.abc import Callable

from app.engine.context import Ctx
from app.engine.outcome import Outcome
from app.engine.steps import cancel, job, judge, manual, playbook, report
from gates.model import StepKind
from gates.transitions import Event, RunStatus

HANDLERS: dict[str, Callable[[Ctx], Outcome]] = {
    StepKind.PLAYBOOK: playbook.move,
    StepKind.JOB: job.move,
    StepKind.MANUAL: manual.move,
    StepKind.JUDGE: judge.move,
    StepKind.REPORT: report.move,
}


def move(ctx: Ctx) -> Outcome:
    """Return the next decision about an attempt that is ours for now."""
    attempt, step = ctx.attempt, ctx.step
    if attempt.cancel_requested_at is not None and attempt.verdict is None:  # a verdict that is reached stays reached
        return cancel.move(ctx)
    if attempt.status == RunStatus.QUEUED:
        return Outcome(event=Event.START, attempt={"started_at": attempt.started_at or ctx.now, "problem": None})
    if step is None:
        if attempt.status == RunStatus.WAITING:
            return Outcome(event=Event.RESUME)
        return Outcome(due_s=None, event=Event.FINISH)
    if step.status == "done":  # a person, or a commit before, did it
        return Outcome(event=Event.RESUME if attempt.status == RunStatus.WAITING else None, next_step=True)
    return HANDLERS[step.kind](ctx)
