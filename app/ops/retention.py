"""What is taken away, by policy: never what a signed report speaks of, never a verdict, a manifest, a report, a scan or an audit row.

- events and live samples of attempts that ended long ago. Kept for ever: those of judged attempts of an engagement in which anybody has
  signed anything, since its reports print all attempts.
- evidence of what was never judged and never counted: rehearsals, and attempts canceled before their first measured request.
- stored files that nothing refers to: left over by a crash, or by a step that was repeated.

Each removal is a row of the audit chain that names what went, with its hashes. It is taken away by whoever says `quadgate retention --apply`, or
once a day by a worker where the operator has said so (QUADGATE_RETENTION_DAILY): never by default.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor, require
from app.accounts.roles import Permission
from app.approvals.models import Approval
from app.attempts.models import Attempt, Sample, StepEvent, VerdictRevision
from app.audit import chain
from app.engine.models import Canary
from app.engine.rows import insert_new
from app.evidence import store
from app.evidence.models import EvidenceFile
from app.kit.db import database_now, read_session, require_database, write_session
from app.kit.errors import QuadgateError, Refused
from app.ops import maintenance, references
from app.settings import settings
from gates.transitions import RunStatus

SIGNED = ("sign_off", "conditional", "stop_loss", "close")  # approvals that rest on reports
OVER = (str(RunStatus.FINISHED), str(RunStatus.CANCELED))  # an attempt in error may be tried again
log = logging.getLogger("quadgate.ops")
RUN = "retention"  # the row that says when all of the policy was applied last, beside the canary's
DAY_S = 86400.0
PORTION_S = 30.0  # of a worker's child at once, which looks at targets meanwhile for nobody; the rest waits for the next look
ORPHAN_DAYS = 7  # a file is stored before the row that refers to it is committed: this much later it is nobody's


@dataclass(frozen=True)
class Removal:
    """One thing to be taken away: `events`, `evidence` (of an attempt) or `orphans`; how many, and their bytes where that is known."""

    kind: str
    attempt_id: str
    count: int
    size: int = 0


def plan(s: Session) -> list[Removal]:
    """Return what the policy would take away now. Changes nothing."""
    found = []
    for attempt_id in _ended(s, settings().keep_events_days, _speaks_of()):
        rows = sum(s.scalar(select(func.count()).where(model.attempt_id == attempt_id)) or 0 for model in (StepEvent, Sample))
        if rows:
            found.append(Removal("events", attempt_id, rows))
    for attempt_id in _ended(s, settings().keep_unjudged_days, _counts()):
        files, size = s.execute(select(func.count(), func.sum(EvidenceFile.size)).where(EvidenceFile.attempt_id == attempt_id)).one()
        if files:
            found.append(Removal("evidence", attempt_id, files, int(size)))
    orphans = _orphans(s)
    if orphans:
        found.append(Removal("orphans", "", len(orphans), sum(store.path_of(sha256).stat().st_size for sha256 in orphans)))
    return found


def apply(*, actor: Actor, seconds: float | None = None) -> list[Removal]:
    """Take away what the policy says, one transaction an attempt. Returns what went. Refused while a backup is made, on whatever node.

    `seconds`: begin nothing more after that; what is left goes another time.
    """
    require(actor, Permission.MANAGE_USERS)
    require_database()
    until = None if seconds is None else time.monotonic() + seconds
    with maintenance.alone():
        with read_session() as s:
            wanted = [removal for removal in plan(s) if removal.attempt_id]
        gone: list[Removal] = []
        for removal in wanted:
            if until is not None and time.monotonic() > until:
                return gone
            if _remove(removal, actor):
                gone.append(removal)
        gone += _remove_orphans(actor)
        _note_run()
        return gone


def apply_when_due() -> list[Removal]:
    """Take away a portion of what the policy says, where the operator wants that daily and a day is over. Returns what went.

    A backup or another node that is at it is no error: there is a next time.
    """
    with read_session() as s:
        if not settings().retention_daily or not _due(s):
            return []
    try:
        gone = apply(actor=SYSTEM, seconds=PORTION_S)
    except Refused:
        return []
    except QuadgateError as error:
        log.warning("retention: %s", error)
        return []
    log.info("retention took away %s entries", len(gone))
    return gone


def last_run(s: Session) -> datetime | None:
    """Return when all of the policy was applied last, by whomever; None when it never was."""
    return s.scalar(select(Canary.returned_at).where(Canary.name == RUN))


def _due(s: Session) -> bool:
    last = last_run(s)
    return last is None or not 0 <= (database_now(s) - last).total_seconds() < DAY_S  # clocks are set back too


def _note_run() -> None:
    with write_session() as s:
        insert_new(s, Canary, [{"name": RUN}], ("name",))
        s.execute(update(Canary).where(Canary.name == RUN).values(returned_at=database_now(s)))


def _remove_orphans(actor: Actor) -> list[Removal]:
    with read_session() as s:
        orphans = _orphans(s)
    sizes = {sha256: store.path_of(sha256).stat().st_size for sha256 in orphans}
    away = [sha256 for sha256 in orphans if store.discard(sha256, before=_orphaned_before())]
    if not away:
        return []
    with write_session() as s:
        chain.record(s, actor=actor, action="retention.orphans", object_kind="service", object_id=settings().node, data={"sha256": away})
    return [Removal("orphans", "", len(away), sum(sizes[sha256] for sha256 in away))]


def _remove(removal: Removal, actor: Actor) -> bool:
    """Take away one attempt's rows, if the policy still says so inside the transaction."""
    with write_session() as s:
        days, but = (settings().keep_events_days, _speaks_of()) if removal.kind == "events" else (settings().keep_unjudged_days, _counts())
        if removal.attempt_id not in _ended(s, days, but):
            return False
        if removal.kind == "events":
            data: dict[str, Any] = {
                model.__tablename__: len(s.execute(delete(model).where(model.attempt_id == removal.attempt_id).returning(model.id)).all())
                for model in (StepEvent, Sample)
            }
        else:
            rows = s.scalars(select(EvidenceFile).where(EvidenceFile.attempt_id == removal.attempt_id).order_by(EvidenceFile.path)).all()
            data = {"files": [{"path": row.path, "sha256": row.sha256, "size": row.size} for row in rows]}
            for row in rows:
                s.delete(row)
        chain.record(s, actor=actor, action=f"retention.{removal.kind}", object_kind="attempt", object_id=removal.attempt_id, data=data)
        return True


def _ended(s: Session, days: int, but: set[str] | object) -> list[str]:
    """Return the attempts that ended so many days ago and are not among those that the policy keeps; none when `days` is 0."""
    if days <= 0:
        return []
    limit = database_now(s) - timedelta(days=days)
    query = select(Attempt.id).where(Attempt.status.in_(OVER), Attempt.finished_at < limit, Attempt.id.not_in(but)).order_by(Attempt.id)  # type: ignore[arg-type]
    return list(s.scalars(query))


def _speaks_of() -> object:
    """Select the judged attempts of every engagement in which anybody has signed: its reports speak of all of them."""
    signed = select(Approval.engagement_id).where(Approval.object_kind.in_(SIGNED))
    judged = select(VerdictRevision.attempt_id)
    return select(Attempt.id).where(Attempt.engagement_id.in_(signed), or_(Attempt.id.in_(judged), Attempt.verdict.is_not(None)))


def _counts() -> object:
    """Select the attempts whose evidence is kept for ever: judged ones, and those that count."""
    counted = (Attempt.rehearsal.is_(False)) & (Attempt.counted_at.is_not(None))
    return select(Attempt.id).where(or_(counted, Attempt.verdict.is_not(None), Attempt.id.in_(select(VerdictRevision.attempt_id))))


def _orphans(s: Session) -> list[str]:
    if not references.readable(s):  # a damaged manifest no longer says what it keeps
        return []
    kept = references.referred(s)
    before = _orphaned_before()
    names = {path.parent.name + path.name: path for path in store.stored_files()}
    return sorted(sha256 for sha256, path in names.items() if sha256 not in kept and path.stat().st_mtime < before)


def _orphaned_before() -> float:
    return time.time() - ORPHAN_DAYS * 86400
