"""The lease: who may move an attempt now, and the guarded commit of what they did. The database's clock decides, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, case, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.attempts.models import Attempt, Step, Transition
from app.attempts.moves import audited_reason, kept_reason
from app.audit import chain
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.engine import locks, nodes, sight, words
from app.engine.context import Ctx
from app.engine.outcome import Outcome
from app.engine.policy import CANCEL_STALE_S
from app.engine.takeover import take_over
from app.kit.db import database_now, write_session
from app.settings import settings
from gates.transitions import IllegalTransition, RunStatus, apply

MOVING = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.LOST_CONTACT)
LEASES_TOO_MANY = 2
CANCEL_LEAVES = 1 / 3  # of a lease: who lives renews it with two thirds left (keep.THIRDS); with so little left a renewal was missed, and time given


def movable() -> ColumnElement[bool]:
    """Return the condition that an attempt can move: it has not ended, or it ended in error and is to be canceled."""
    return or_(
        Attempt.status.in_([str(status) for status in MOVING]), and_(Attempt.status == str(RunStatus.ERROR), Attempt.cancel_requested_at.is_not(None))
    )


def canceled() -> ColumnElement[bool]:
    """Return the condition that an attempt's next move is its cancel: a verdict that is reached stays reached."""
    return and_(Attempt.cancel_requested_at.is_not(None), Attempt.verdict.is_(None))


def unheld(now: datetime) -> ColumnElement[bool]:
    """Return the condition that nobody has a lease. One that would last much longer than we ever give is from a clock that was set back since.

    A cancel has no time to wait for the end of a lease that nobody renews any more. Should its holder live after all, what it was at is to be
    given up anyway: it cannot renew or commit (both ask for their own claim), and targets refuse its fence (see `claim`).
    """
    lease = timedelta(seconds=settings().lease_seconds)
    dropped = and_(canceled(), Attempt.lease_until < now + CANCEL_LEAVES * lease)
    return or_(Attempt.lease_until.is_(None), Attempt.lease_until < now, Attempt.lease_until > now + LEASES_TOO_MANY * lease, dropped)


@dataclass(frozen=True)
class Claim:
    """A lease that is ours until `settings().lease_seconds` are over."""

    attempt_id: str
    generation: int
    owner: str
    node: str
    taken_from: str | None = None  # the silent node whose attempt it was until now


def claim(attempt_id: str, generation: int | None, *, owner: str, node: str) -> Claim | None:
    """Take the lease by one conditional UPDATE. None: somebody else has it, went on, or it is another node's attempt.

    `generation` None stands for the present one: the nudge of a host process, which cannot know it.
    """
    with write_session() as s:
        now = database_now(s)
        quiet = and_(canceled(), Attempt.node.in_(nodes.stale(s, now, CANCEL_STALE_S)))
        mine = or_(Attempt.node.is_(None), Attempt.node == node, sight.takable(s, node, nodes.stale(s, now)), quiet)
        before = s.execute(select(Attempt.node, Attempt.lease_until, Attempt.problem).where(Attempt.id == attempt_id)).one_or_none()
        guard = [
            Attempt.id == attempt_id,
            movable(),
            unheld(now),
            mine,
        ]
        if generation is not None:
            guard.append(Attempt.generation == generation)
        until = now + timedelta(seconds=settings().lease_seconds)
        values: dict[str, Any] = {"lease_owner": owner, "lease_until": until, "lease_since": now, "node": node}
        values["last_enqueued_at"] = None  # its hint has been taken: should we die now, the next one waits for no lost hint
        if before is not None and words.is_stranded(before.problem):
            values["problem"] = None
        row = s.execute(
            update(Attempt).where(*guard).values(**values).returning(Attempt.generation).execution_options(synchronize_session=False)
        ).one_or_none()
        if row is None or before is None:
            return None
        silent = before.node if before.node not in (None, node) else None
        lapsed = before.lease_until is None or not now <= before.lease_until <= until
        if silent is not None or not lapsed:  # from a node or a holder that fell silent: its late commands must be refused by the targets
            take_over(s, attempt_id)
        return Claim(attempt_id, row.generation, owner, node, silent)


def renew(held: Claim) -> bool:
    """Make the lease last anew before a longer call. False: it is no longer ours."""
    with write_session() as s:
        until = database_now(s) + timedelta(seconds=settings().lease_seconds)
        if not _guarded(s, held, {"lease_until": until}):
            return False
        nodes.worked(s, held.node)
        return True


def commit(held: Claim, ctx: Ctx, outcome: Outcome) -> bool:
    """Write a decision in one transaction: columns, transition and audit row, whatever else it brings. False: somebody else went on."""
    with write_session() as s:
        now = database_now(s)
        due = None if outcome.due_s is None else now + timedelta(seconds=outcome.due_s)
        values = {**outcome.attempt, "generation": held.generation + 1, "lease_owner": None, "lease_until": None}
        values["last_enqueued_at"] = now if outcome.due_s == 0 else None  # the successor is published at once, by us
        if outcome.next_step:
            values["step_index"] = ctx.attempt.step_index + 1
        if outcome.trouble is not None:
            values["problem"] = outcome.trouble.json(ctx.step.key if ctx.step else "")
        status = RunStatus(ctx.attempt.status)
        target: RunStatus | None = None
        if outcome.event is not None:
            answer = apply(status, outcome.event)
            if isinstance(answer, IllegalTransition):
                raise ValueError(answer.text.en)
            target = answer
            values["status"] = str(target)
            if target.ended:
                values["finished_at"] = now
        # Who asked for a move while ours was under way (a cancel, a form) did so by the due time, and is not slept over.
        asked = Attempt.next_due_at.is_distinct_from(ctx.attempt.next_due_at)
        over = target in (RunStatus.FINISHED, RunStatus.CANCELED)
        values["next_due_at"] = due if over else case((asked, now), else_=due)
        if not _guarded(s, held, values):
            return False
        nodes.worked(s, held.node)
        if ctx.step is not None and outcome.step:
            _write_step(s, ctx.step.id, outcome, now=now)
        if target is not None:
            _transition(s, held, status, target, outcome, now=now)
            if target.ended:
                locks.release(s, held.attempt_id)
        for write in outcome.writes:
            write(s)
        if target is not None and target.ended:  # an end without a verdict may have been the last attempt that the plan allows
            engagement_facts.settle(s, s.get_one(Engagement, ctx.engagement.id), SYSTEM)
        return True


def _guarded(s: Session, held: Claim, values: dict[str, object]) -> bool:
    mine = (Attempt.id == held.attempt_id, Attempt.generation == held.generation, Attempt.lease_owner == held.owner)
    row = s.execute(update(Attempt).where(*mine).values(**values).returning(Attempt.id).execution_options(synchronize_session=False)).one_or_none()
    return row is not None


def _write_step(s: Session, step_id: str, outcome: Outcome, *, now: object) -> None:
    step = s.get_one(Step, step_id)
    for name, value in outcome.step.items():
        setattr(step, name, value)
    if outcome.trouble is not None:
        step.problem = outcome.trouble.json()
    if step.status != "pending" and step.started_at is None:
        step.started_at = now  # type: ignore[assignment]
    if step.status in ("done", "failed", "canceled"):
        step.finished_at = now  # type: ignore[assignment]


def _transition(s: Session, held: Claim, status: RunStatus, target: RunStatus, outcome: Outcome, *, now: object) -> None:
    event = str(outcome.event)
    s.add(
        Transition(
            attempt_id=held.attempt_id,
            generation=held.generation + 1,
            from_status=str(status),
            event=event,
            to_status=str(target),
            actor=SYSTEM.label,
            reason=kept_reason(outcome.reason),
            at=now,
        )
    )
    data = {
        "from": str(status),
        "event": event,
        "to": str(target),
        "generation": held.generation + 1,
        "reason": audited_reason(outcome.reason),
    }
    chain.record(s, actor=SYSTEM, action=f"attempt.{event}", object_kind="attempt", object_id=held.attempt_id, data=data)
