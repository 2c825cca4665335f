"""What the end of the service means for attempts: those that run are canceled, those that wait for a person or a start go on waiting."""

from __future__ import annotations

from sqlalchemy import select

from app.accounts.actor import SYSTEM
from app.attempts.models import Attempt
from app.attempts.moves import audited_reason, kept_reason
from app.audit import chain
from app.engagements.models import Engagement
from app.kit.db import database_now, read_session, write_session
from gates.text import Text
from gates.transitions import RunStatus

ACTIVE = (str(RunStatus.RUNNING), str(RunStatus.LOST_CONTACT))

WAITING = (str(RunStatus.QUEUED), str(RunStatus.WAITING))


def cancel_running(reason: Text) -> list[str]:
    """Ask all running attempts to cancel. Returns their ids; the engine does the rest."""
    with write_session() as s:
        attempts = list(
            s.scalars(select(Attempt).where(Attempt.status.in_(ACTIVE), Attempt.cancel_requested_at.is_(None), Attempt.verdict.is_(None)))
        )
        now = database_now(s)
        for attempt in attempts:
            attempt.cancel_requested_at, attempt.cancel_reason, attempt.next_due_at, attempt.last_enqueued_at = now, kept_reason(reason), now, None
            data = {"reason": audited_reason(reason)}
            chain.record(s, actor=SYSTEM, action="attempt.request_cancel", object_kind="attempt", object_id=attempt.id, data=data)
    return active()


def active() -> list[str]:
    """Return the attempts that run."""
    with read_session() as s:
        return list(s.scalars(select(Attempt.id).where(Attempt.status.in_(ACTIVE))))


def waiting() -> list[str]:
    """Return the attempts that wait for a person or a start: the end of the service leaves them as they are."""
    with read_session() as s:
        return list(s.scalars(select(Attempt.id).where(Attempt.status.in_(WAITING))))


def names(ids: list[str]) -> list[str]:
    """Return what people call these attempts: engagement, gate and number."""
    rows = select(Engagement.code, Attempt.gate, Attempt.number).join(Engagement, Engagement.id == Attempt.engagement_id).where(Attempt.id.in_(ids))
    with read_session() as s:
        return [f"{code} {gate} #{number}" for code, gate, number in s.execute(rows)]


def troubles(ids: list[str]) -> list[Text]:
    """Return what could not be stopped of these attempts, as their cancels said it."""
    with read_session() as s:
        problems = s.scalars(select(Attempt.problem).where(Attempt.id.in_(ids), Attempt.status == str(RunStatus.CANCELED)))
        return [Text.parse(problem) for problem in problems if problem]
