"""One move of one attempt: claim, work outside any transaction, commit guarded by the generation, publish the successor.

A move that orders a poll takes along the polls of its site that are due (rounds.py): several moves then, each under its own lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from types import TracebackType

from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from app.attempts.models import Attempt
from app.engine import due, hints, holders, rounds, runner, slots, words
from app.engine.claim import Claim, claim, commit
from app.engine.context import Ctx, load
from app.engine.keep import CancelAsked, Keeping, LeaseLost
from app.engine.move import move
from app.engine.outcome import Outcome, Trouble, failed
from app.engine.policy import BUSY_S, PUSH_BACK_S
from app.engine.runner import HostsFull, RunnerAway
from app.evidence.judgement import Outdated
from app.kit import logs, traces
from app.kit.db import database_now, read_session, write_session
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
    """Move an attempt, and with it others of its site that are to be polled now: each is decided by itself, then all begin, then each is written."""
    held = _claim(attempt_id, generation)
    if held is None:
        return False
    with ExitStack() as stack:
        together = stack.enter_context(rounds.Round())
        first = stack.enter_context(_Turn(held, together, span))
        turns = [first] if first.decide() else []
        if together.boarded and first.may_lead():
            turns += [turn for turn in _others(first, together, stack) if turn.decide()]
            span.say(together=len(together.boarded))
        together.go()
        written = [turn.write() for turn in turns]
    return any(written[:1])


def _claim(attempt_id: str, generation: int | None) -> Claim | None:
    try:
        return claim(attempt_id, generation, owner=holders.owner(), node=settings().node)
    except OperationalError as error:
        log.warning("attempt %s: the database did not answer (%s); the next tick tries again", attempt_id, error.orig)
        return None


def _others(first: _Turn, together: rounds.Round, stack: ExitStack) -> Iterator[_Turn]:
    """Claim one after the other who may board the poll of the first. Whoever cannot be claimed now is polled by itself when its time comes."""
    try:
        for attempt_id, generation in rounds.others(first.ctx, runner.room() - 1):
            held = _claim(attempt_id, generation)
            if held is not None:
                yield stack.enter_context(_Turn(held, together, traces.Span(), beside=True))  # told of by the span of the first
    except Exception as error:  # whatever it is, it keeps nobody from being polled by himself
        expected = isinstance(error, OperationalError | RunnerAway)
        log.warning("attempt %s: no further ones are polled with it (%s)", first.held.attempt_id, type(error).__name__, exc_info=not expected)


class _Turn:
    """One attempt under a lease of ours. What goes wrong with it is said and pushes it back, and concerns nobody beside it."""

    ctx: Ctx

    def __init__(self, held: Claim, together: rounds.Round, span: traces.Span, *, beside: bool = False) -> None:
        self.held, self._together, self._span, self._beside = held, together, span, beside
        self._lease, self._outcome, self._boards = Keeping(held), Outcome(), False

    def __enter__(self) -> _Turn:
        self._lease.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lease.__exit__(kind, error, trace)

    def decide(self) -> bool:
        """Work outside any transaction. What the decision starts together with others has not begun yet. False: there is nothing to write."""
        return self._tried(self._decide)

    def may_lead(self) -> bool:
        """Tell whether others may board what this one starts."""
        return self._boards and rounds.may_lead(self.ctx)

    def write(self) -> bool:
        """Commit the decision guarded by the generation, and publish the successor. False: it was not written."""
        return self._tried(self._write)

    def _decide(self) -> bool:
        self.ctx = load(self.held.attempt_id, owner=self.held.owner, node=self.held.node, still_ours=self._lease.check)
        self.ctx.together, self.ctx.beside, self.ctx.taken_from = self._together, self._beside, self.held.taken_from
        if self.ctx.attempt.cancel_requested_at is None and self.ctx.attempt.verdict is None:
            self._lease.watch_for_cancel()
        step, boarded = self.ctx.step, len(self._together.boarded)
        known = {"gate": self.ctx.attempt.gate, "step": step.key if step else None, "generation": self.held.generation}
        self._span.say(**known, step_status=step.status if step else None)
        with self._about():
            self._outcome = _decide(self.ctx, move)
        self._boards = len(self._together.boarded) > boarded
        return True

    def _write(self) -> bool:
        held, ctx = self.held, self.ctx
        with self._about():
            if self._boards and (trouble := self._together.trouble) is not None:
                self._outcome = _decide(ctx, lambda _: _raise(trouble))
            outcome = self._outcome
            written = _commit(held, ctx, outcome)
            self._span.say(event=str(outcome.event) if outcome.event else None)
            if outcome.event is not None or outcome.next_step:
                log.info("%s%s", outcome.event or "next step", "" if written else ": somebody else went on")
        if written and outcome.due_s == 0:
            with read_session() as s:  # not from what was read before: the commit itself may have stopped the engagement
                kind = due.kind_of(s, held.attempt_id)
            hints.publish_advance(held.attempt_id, held.generation + 1, held.node, kind)
        return written

    def _about(self) -> AbstractContextManager[None]:
        """Let every line of the log be about this attempt and its step."""
        step, attempt = self.ctx.step, self.ctx.attempt
        named = {"step": step.key if step else None, "step_id": step.id if step else None}
        return logs.about(attempt=attempt.id, gate=attempt.gate, generation=self.held.generation, **named)

    def _tried(self, what: Callable[[], bool]) -> bool:
        held, attempt_id = self.held, self.held.attempt_id
        try:
            return what()
        except CancelAsked as error:
            log.info("%s; what was worked out here is thrown away", error)
            _push_back(held, 0.0)
            hints.publish_advance(held.attempt_id, held.generation, held.node)
        except LeaseLost as error:
            log.info("%s; what was worked out here is thrown away", error)
        except OperationalError as error:  # the database is busy or away: nobody's fault, and nothing is lost
            log.warning("attempt %s: the database did not answer (%s); tried again later", attempt_id, type(error.orig).__name__)
            _push_back(held)
        except Outdated as error:  # an approval came in while it was judged: once more, with it
            log.info("%s; judged anew", error)
            _push_back(held, 0.0)
        except HostsFull as error:  # nothing has begun; whoever is due longest comes first
            log.info("attempt %s: %s", attempt_id, error)
            _push_back(held, BUSY_S)
        except RunnerAway as error:  # it is being replaced: nothing has begun
            log.warning("attempt %s: %s; tried again later", attempt_id, error)
            _push_back(held)
        except Exception:
            log.exception("attempt %s cannot be moved at all; pushed back", attempt_id)
            _push_back(held)
        return False


def _raise(trouble: Exception) -> Outcome:
    raise trouble


def _decide(ctx: Ctx, decide: Callable[[Ctx], Outcome]) -> Outcome:
    """Ask for a decision; an error of whatever kind becomes a sentence on the attempt, its trace goes to the log only."""
    try:
        return decide(ctx)
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
