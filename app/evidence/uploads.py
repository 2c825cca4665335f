"""Files of a form that was refused: kept for its owner and for that very form, so that nobody has to choose them again.

A form names a kept file by its row, never by its hash: with a hash anybody could ask for whatever the store holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.attempts.forms import LARGEST_FILE, MOST_FILES, kind_of
from app.evidence import store
from app.evidence.models import KeptUpload
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_
from gates.canonical import sha256_of

KEPT_FOR = timedelta(days=1)  # somebody goes for the missing answer and comes back to the form
LONGEST_NAME = 120
File = tuple[str, bytes]


def place_of(*parts: str) -> str:
    """Return the name of one form of one object: whatever distinguishes it, hashed to one length."""
    return sha256_of(list(parts))


def kept(s: Session, *, place: str, actor: Actor) -> list[KeptUpload]:
    """Return the files that are kept for this person at this form, the first one first."""
    mine = (KeptUpload.user_id == actor.user_id, KeptUpload.place == place, KeptUpload.at > now() - KEPT_FOR)
    return list(s.scalars(select(KeptUpload).where(*mine).order_by(KeptUpload.at, KeptUpload.id)))


def chosen(s: Session, *, place: str, ids: Collection[str], actor: Actor) -> list[File]:
    """Return the kept files that the form names. Raises BadInput when one is not this person's at this form, or no longer kept."""
    mine = {row.id: row for row in kept(s, place=place, actor=actor)}
    if any(wanted not in mine for wanted in ids):
        field = FieldProblem("/kept", N_("A kept file is there for a day, for whoever uploaded it, on the form it was uploaded with."))
        raise BadInput("not_kept", N_("A file that was uploaded before is not kept any more: choose it again."), [field])
    return [(row.name, store.read(row.sha256)) for row in mine.values() if row.id in ids]


def keep(s: Session, *, place: str, files: Iterable[File], actor: Actor, most: int = MOST_FILES) -> None:
    """Keep what a form could take: pictures and PDFs within the size that is taken, each once, at most so many. Forgets what is a day old."""
    s.execute(delete(KeptUpload).where(KeptUpload.at <= now() - KEPT_FOR))
    known = {row.sha256 for row in kept(s, place=place, actor=actor)}
    for name, data in files:
        if len(data) > LARGEST_FILE or kind_of(data) is None or len(known) >= most:
            continue
        stored = store.put_bytes(data)
        if stored.sha256 not in known:
            known.add(stored.sha256)
            s.add(
                KeptUpload(
                    id=new_id(), user_id=actor.user_id, place=place, name=name[:LONGEST_NAME], sha256=stored.sha256, size=stored.size, at=now()
                )
            )
    s.flush()


def forget(s: Session, *, place: str, actor: Actor, but: Collection[str] = ()) -> None:
    """Let go of what is kept for this person at this form, but for the rows that are named. Retention takes the bytes that nothing refers to."""
    s.execute(delete(KeptUpload).where(KeptUpload.user_id == actor.user_id, KeptUpload.place == place, KeptUpload.id.not_in(list(but))))
