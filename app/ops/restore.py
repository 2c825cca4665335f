"""Bringing a backup back, on this machine or on another: into an empty state directory, verified before and after.

What ran when the backup was made runs on at its targets. It is adopted: every attempt that has not ended gets a higher fence, so that the
targets refuse a controller that was left behind; its node is forgotten, so that this one takes it at once; and a playbook that was under way
counts as lost, since its host process was on the other machine.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.attempts.models import Attempt
from app.audit import chain
from app.engine.claim import movable
from app.engine.models import Canary, Node
from app.engine.takeover import take_over
from app.evidence import store
from app.kit import migrate
from app.kit.db import database_now, read_session, write_session
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_
from app.ops import backup, database_copy
from app.settings import settings

# A restore's fence is the seconds since then, if that is more than one above the backup's: what became of the attempt after the backup, by node after
# node or by another restore of the same one, raised its fence by ones, and the targets know the number.
COUNTED_FROM = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Restored:
    """What came back: how many files, which attempts go on."""

    files: int
    adopted: list[str]
    audit_head: str


def restore(folder: Path, *, actor: Actor) -> Restored:
    """Fill the empty state directory and the empty database of the settings from a backup.

    Raises Refused when something is there already, QuadgateError when the backup is not whole; then nothing was changed.
    """
    folder = folder.resolve()
    require_empty_state()
    whole = backup.verify(folder)
    if whole.problems:
        raise QuadgateError(
            "backup_damaged",
            N_("The backup is not whole, so nothing was restored: {problem} ({n} problems in all)"),
            problem=whole.problems[0],
            n=len(whole.problems),
        )
    settings().state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for entry in whole.note["files"]:
        if entry["path"].startswith(f"{backup.EVIDENCE}/"):
            store.put_file(folder / entry["path"])
    if (folder / backup.CREDENTIALS).is_dir():
        shutil.copytree(folder / backup.CREDENTIALS, settings().state_dir / backup.CREDENTIALS, dirs_exist_ok=True)
    database_copy.load(folder, whole.note["database"])
    migrate.upgrade()
    with write_session() as s:
        adopted = adopt(s)
        data = {"made_at": whole.note["made_at"], "from_node": whole.note["node"], "backup_head": whole.note["audit_head"], "adopted": adopted}
        chain.record(s, actor=actor, action="service.restore", object_kind="service", object_id=settings().node, data=data)
    seen = backup.Seen()
    with read_session() as s:
        seen.look(s)
    if found := seen.problems(entry["path"] for entry in whole.note["files"]):
        raise QuadgateError("restored_badly", N_("What was restored does not fit together: {problem}"), problem=found[0])
    return Restored(len(whole.note["files"]), adopted, seen.head)


def require_empty_state() -> None:
    """Raise Refused when the state directory or the database holds anything."""
    state = settings().state_dir
    if state.exists() and (found := next((path for path in sorted(state.rglob("*")) if path.is_file()), None)):
        raise Refused(
            "state_in_use",
            N_("The state directory {path} holds {found}. A backup is restored into an empty one: set QUADGATE_STATE_DIR to a new folder."),
            path=str(state),
            found=str(found.relative_to(state)),
        )
    database_copy.require_empty()


def adopt(s: Session) -> list[str]:
    """Make all attempts that go on ours. Returns their ids."""
    s.execute(delete(Node))
    s.execute(delete(Canary))
    now = database_now(s)
    adopted = []
    for attempt in s.scalars(select(Attempt).where(movable()).order_by(Attempt.id)):
        take_over(s, attempt.id, above=int((now - COUNTED_FROM).total_seconds()))
        attempt.generation += 1
        attempt.node = attempt.lease_owner = attempt.lease_until = attempt.last_enqueued_at = None
        if attempt.next_due_at is not None:
            attempt.next_due_at = now
        adopted.append(attempt.id)
    return adopted
