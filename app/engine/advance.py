"""One move of one attempt: claim, work outside any transaction, commit guarded by the generation, publish the successor."""

from __future__ import annotations

import logging
import os
import socket
from datetime import timedelta

from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from app.attempts.models import Attempt
from app.engine import due, hints, slots, words
from app.engine.claim import Claim, claim, commit
from app.engine.context import Ctx, load
from app.engine.keep import Keeping, LeaseLost
from app.engine.move import move
from app.engine.outcome import Outcome, Trouble, failed
from app.engine.policy import BUSY_S, PUSH_BACK_S
from app.engine.runner import HostsFull, RunnerAway
from app.evidence.judgement import Outdated
from app.kit import logs, traces
from app.kit.db import database_now, new_id, write_session
from app.kit.errors import QuadgateError
from app.settings import settings

log = logging.getLogger("quadgate.engine")


def advance(attempt_id: str, generation: int | None, *, parent: str = "") -> bool:
    """Move an attempt by one step of work. False when there was nothing to do for us: that is normal, not an error.

    `parent`: the traceparent that came with the hint.
    """
    with logs.about(attempt=attempt_id), traces.span("advance", parent=parent, attempt=attempt_id, generation=generation) as span:
        moved = _advance(attempt_id, generation, span)
        span.say(moved=moved)
        return moved


def advance_heavy(attempt_id: str, generation: int | None, *, parent: str = "") -> bool:
    """Move an attempt that is to be judged or printed, when this worker has a child to spare for it; then hand the place on to the next one."""
    with slots.heavy() as free:
        moved = advance(attempt_id, generation, parent=parent) if free else False
    if free:
        _hand_on(settings().node)
    return moved


def _hand_on(node: str) -> None:
    """Hint the next heavy work of a node when nothing waits in its queue: what came while all slots were taken was dropped."""
    queue = hints.HEAVY.format(node=node)
    if hints.waiting([queue]).get(queue):
        return
    try:
        with write_session() as s:
            row = due.next_heavy(s, node)
    except OperationalError as error:
        log.warning("the database did not answer (%s); the next tick hints what is due", type(error.orig).__name__)
        return
    if row is not None:
        hints.publish_advance(row.attempt_id, row.generation, row.node, row.kind)


def _advance(attempt_id: str, generation: int | None, span: traces.Span) -> bool:
    try:
        held = claim(attempt_id, generation, owner=_owner(), node=settings().node)
    except OperationalError as error:
        log.warning("attempt %s: the database did not answer (%s); the next tick tries again", attempt_id, error.orig)
        return False
    if held is None:
        return False
    try:
        with Keeping(held) as lease:
            outcome, written = _move(held, load(attempt_id, owner=held.owner, node=held.node, still_ours=lease.check), span)
    except LeaseLost as error:
        log.info("%s; what was worked out here is thrown away", error)
        return False
    except OperationalError as error:  # the database is busy or away: nobody's fault, and nothing is lost
        log.warning("attempt %s: the database did not answer (%s); tried again later", attempt_id, type(error.orig).__name__)
        _push_back(held)
        return False
    except Outdated as error:  # an approval came in while it was judged: once more, with it
        log.info("%s; judged anew", error)
        _push_back(held, 0.0)
        return False
    except HostsFull as error:  # nothing has begun; whoever is due longest comes first
        log.info("attempt %s: %s", attempt_id, error)
        _push_back(held, BUSY_S)
        return False
    except RunnerAway as error:  # it is being replaced: nothing has begun
        log.warning("attempt %s: %s; tried again later", attempt_id, error)
        _push_back(held)
        return False
    except Exception:
        log.exception("attempt %s cannot be moved at all; pushed back", attempt_id)
        _push_back(held)
        return False
    if written and outcome.due_s == 0:
        hints.publish_advance(attempt_id, held.generation + 1, held.node, outcome.next_kind)
    return written


def _move(held: Claim, ctx: Ctx, span: traces.Span) -> tuple[Outcome, bool]:
    step = ctx.step
    span.say(gate=ctx.attempt.gate, step=step.key if step else None, step_status=step.status if step else None, generation=held.generation)
    with logs.about(gate=ctx.attempt.gate, step=step.key if step else None, step_id=step.id if step else None, generation=held.generation):
        outcome = _decide(ctx)
        outcome.next_kind = _next_kind(ctx, outcome)
        written = _commit(held, ctx, outcome)
        span.say(event=str(outcome.event) if outcome.event else None)
        if outcome.event is not None or outcome.next_step:
            log.info("%s%s", outcome.event or "next step", "" if written else ": somebody else went on")
    return outcome, written


def _next_kind(ctx: Ctx, outcome: Outcome) -> str | None:
    """Return the kind of the step that the attempt is at after a decision."""
    index = int(outcome.attempt.get("step_index", ctx.attempt.step_index + outcome.next_step))
    return ctx.steps[index].kind if index < len(ctx.steps) else None


def _decide(ctx: Ctx) -> Outcome:
    """Ask the step; an error of whatever kind becomes a sentence on the attempt, its trace goes to the log only."""
    try:
        return move(ctx)
    except QuadgateError as error:
        return failed(Trouble(error.code, error.pair()))
    except (OperationalError, RunnerAway, LeaseLost):
        raise
    except OSError as error:
        log.exception("attempt %s, step %s: the machine refused something", ctx.attempt.id, ctx.step.key if ctx.step else "-")
        return failed(words.machine(ctx, error, settings().runs_dir))
    except Exception as error:
        log.exception("attempt %s, step %s: internal error", ctx.attempt.id, ctx.step.key if ctx.step else "-")
        return failed(words.internal(ctx, error))


def _commit(held: Claim, ctx: Ctx, outcome: Outcome) -> bool:
    """Write the decision; when writing it fails for a reason of its own, write that instead."""
    try:
        return commit(held, ctx, outcome)
    except (OperationalError, Outdated):
        raise
    except QuadgateError as error:
        outcome.due_s = None
        return commit(held, ctx, failed(Trouble(error.code, error.pair())))
    except Exception as error:
        log.exception("attempt %s: the decision could not be written", ctx.attempt.id)
        outcome.due_s = None
        return commit(held, ctx, failed(words.internal(ctx, error)))


def _push_back(held: Claim, seconds: float = PUSH_BACK_S) -> None:
    """Let a row that cannot be moved rest for a while, so that it never spins; the lease's end would do it too, later."""
    try:
        with write_session() as s:
            due = database_now(s) + timedelta(seconds=seconds)
            mine = (Attempt.id == held.attempt_id, Attempt.generation == held.generation, Attempt.lease_owner == held.owner)
            s.execute(
                update(Attempt)
                .where(*mine)
                .values(lease_owner=None, lease_until=None, next_due_at=due, last_enqueued_at=None)
                .execution_options(synchronize_session=False)
            )
    except OperationalError:
        log.warning("attempt %s: could not be pushed back; its lease ends by itself", held.attempt_id)


def _owner() -> str:
    """Return a name that no other claim has, not even one of the same process: two that overlap must never take each other for themselves."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{new_id()}"
