"""Bringing a backup back, on this machine or on another: into an empty state directory, verified before and after.

What ran when the backup was made runs on at its targets. It is adopted: every attempt that has not ended gets a higher fence, so that the
targets refuse a controller that was left behind; its node is forgotten, so that this one takes it at once; and a playbook that was under way
counts as lost, since its host process was on the other machine.

Damaged files that nothing refers to are left out and named. Others stop a restore, until somebody accepts by word that they are lost: then the
rest comes back, and they are absent from the store, never there under a name that they do not deserve. Whatever needs one says that it is not
stored; a verdict that rests on one stands, and can not be recomputed. A damaged database is never accepted: without it there is no rest.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.attempts.models import Attempt
from app.audit import chain
from app.engine import marks
from app.engine.claim import movable
from app.engine.models import Canary, Node
from app.engine.takeover import take_over
from app.evidence import store
from app.kit import migrate
from app.kit.db import database_now, read_session, write_session
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_, pair
from app.ops import backup, database_copy, references
from app.settings import settings
from gates.text import Text

# A restore's fence is the seconds since then, if that is more than one above the backup's: what became of the attempt after the backup, by node after
# node or by another restore of the same one, raised its fence by ones, and the targets know the number.
COUNTED_FROM = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Restored:
    """How many files came back, the attempts that go on here, the end of the audit chain, and a sentence for all that is lost.

    `made_at`, `from_node`: when and by which controller the backup was made; `credentials`: whether those of the targets came with it.
    """

    files: int
    adopted: list[str]
    audit_head: str
    made_at: str
    from_node: str
    credentials: bool
    damage: list[Text] = field(default_factory=list)


def restore(folder: Path, *, actor: Actor, accept_damage: bool = False) -> Restored:
    """Fill the empty state directory and the empty database of the settings from a backup.

    `accept_damage`: bring back what is good of a backup that is not whole, if its database is. What is lost is named, here and in the audit row.
    Raises Refused when something is there already, QuadgateError when the backup is not whole; then nothing was changed.
    """
    folder = folder.resolve()
    require_empty_state()
    found = backup.verify(folder)
    _require_acceptable(found, accept_damage)
    good = [entry["path"] for entry in found.note["files"] if entry["path"] not in found.bad]
    _bring_files(folder, good)
    database_copy.load(folder, found.note["database"])
    migrate.upgrade()
    seen = backup.Seen()
    with read_session() as s:
        seen.look(s)
        lost = seen.lost(good)
        rested_on = references.rested_on(s, lost)
    if (problems := seen.problems(good)) and not (accept_damage and not seen.chain):
        raise QuadgateError("restored_badly", N_("What was restored does not fit together: {problem}"), problem=problems[0])
    with write_session() as s:
        adopted = adopt(s)
        data = {"made_at": found.note["made_at"], "from_node": found.note["node"], "backup_head": found.note["audit_head"], "adopted": adopted}
        data |= _damage(found, accept_damage, lost, rested_on)
        chain.record(s, actor=actor, action=marks.RESTORED, object_kind="service", object_id=settings().node, data=data)
        head = chain.head(s)
    marks.forget()
    named = [*found.problems, *found.warnings, *(backup.gone(sha256) for sha256 in lost), *map(_unproven, rested_on, rested_on.values())]
    return Restored(
        len(good),
        adopted,
        f"{head.seq}:{head.hash}",
        found.note["made_at"],
        found.note["node"],
        any(path.startswith(f"{backup.CREDENTIALS}/") for path in good),
        list(dict.fromkeys(named)),
    )


def _require_acceptable(found: backup.Backup, accept_damage: bool) -> None:
    """Raise QuadgateError when a backup is damaged in a way that nobody accepted, or that nobody can accept."""
    if found.broken and accept_damage:
        raise QuadgateError(
            "backup_damaged",
            N_("The database of the backup is damaged, which cannot be accepted, so nothing was restored: {problem}"),
            problem=found.broken[0],
        )
    if found.problems and not accept_damage:
        raise QuadgateError(
            "backup_damaged",
            N_(
                "The backup is not whole, so nothing was restored: {problem} ({n} problems in all; `quadgate backup --verify` names them). "
                "With --accept-damage all the rest is restored"
            ),
            problem=found.problems[0],
            n=len(found.problems),
        )


def _bring_files(folder: Path, good: list[str]) -> None:
    settings().state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in good:
        if path.startswith(f"{backup.EVIDENCE}/"):
            store.put_file(folder / path)
        elif path.startswith(f"{backup.CREDENTIALS}/"):
            (settings().state_dir / backup.CREDENTIALS).mkdir(mode=0o700, exist_ok=True)
            (settings().state_dir / path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(folder / path, settings().state_dir / path)


def _damage(found: backup.Backup, accepted: bool, lost: list[str], rested_on: dict[str, list[str]]) -> dict[str, Any]:
    """Return what the audit row says of damage: nothing where there is none."""
    if not (found.problems or found.warnings):
        return {}
    return {
        "damage_accepted": accepted,
        "damaged": [problem.en for problem in (*found.problems, *found.warnings)],
        "lost": lost,
        "verdicts_rest_on": rested_on,
    }


def _unproven(sha256: str, attempts: list[str]) -> Text:
    return pair(
        N_("A verdict rests on the lost file {sha256} and cannot be recomputed from now on: attempt {attempts}"),
        sha256=sha256,
        attempts=", ".join(attempts),
    )


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
