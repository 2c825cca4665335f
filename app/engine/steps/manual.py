"""A step that waits for a person: the form comes in by a use case, which marks the step done."""

from __future__ import annotations

from app.engine.context import Ctx, title_of
from app.engine.outcome import Outcome
from gates.transitions import Event, RunStatus


def move(ctx: Ctx) -> Outcome:
    """Let the attempt wait. It becomes due again when the form is submitted."""
    if ctx.attempt.status == RunStatus.WAITING:
        return Outcome(due_s=None)
    return Outcome(due_s=None, event=Event.WAIT, reason=title_of(ctx.current), step={"status": "waiting", "problem": None})
