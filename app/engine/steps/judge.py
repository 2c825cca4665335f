"""The judgement: evidence in, a verdict revision out, and what follows from it for the engagement."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.attempts import conclude
from app.engine.context import Ctx
from app.engine.outcome import Outcome, done
from app.evidence import judgement
from app.kit.db import write_session


def move(ctx: Ctx) -> Outcome:
    """Judge outside any transaction, then conclude in the same one as the step's end: a verdict without its consequence cannot exist.

    What the judgement rests on may change meanwhile: then its write raises Outdated, nothing is committed, and the step is moved anew.
    """
    if ctx.attempt.rehearsal:  # practice is never judged
        return done()
    with write_session() as s:
        made = judgement.prepare(s, attempt_id=ctx.attempt.id, actor=SYSTEM)
    document = judgement.judged(made)
    ctx.still_ours()

    def write(s: Session) -> None:
        revision = judgement.keep(s, made, document, actor=SYSTEM)
        conclude.conclude(s, ctx.attempt.id, revision.document)

    outcome = done()
    outcome.writes.append(write)
    return outcome
