"""The judgement: evidence in, a verdict revision out, and what follows from it for the engagement."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.attempts import conclude
from app.engine.context import Ctx
from app.engine.outcome import Outcome, done
from app.evidence import usecases


def move(ctx: Ctx) -> Outcome:
    """Judge, then conclude in the same transaction as the step's end: a verdict without its consequence cannot exist."""
    if ctx.attempt.rehearsal:  # practice is never judged
        return done()

    def write(s: Session) -> None:
        revision = usecases.judge_attempt(s, attempt_id=ctx.attempt.id, actor=SYSTEM)
        conclude.conclude(s, ctx.attempt.id, revision.document)

    outcome = done()
    outcome.writes.append(write)
    return outcome
