"""The audit chain: append one row for each state change, and prove that no row was altered, removed or cut off.

Each row's hash covers all its other fields and the hash of the row before. The end of the chain stands in one row that is moved by
compare-and-swap in the same transaction as the change it records, so the two cannot part. A chain alone cannot show that its end
was cut off: reports print `head`, and `verify` takes such a printed anchor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.audit.models import AuditHead, AuditRow
from app.kit.clock import now
from app.kit.errors import Refused
from app.kit.i18n import N_, pair
from gates.canonical import plain, sha256_of
from gates.text import Text

GENESIS = "sha256:" + "0" * 64
HEAD_ID = 1
SHOWN_PROBLEMS = 20
BATCH = 500


@dataclass(frozen=True)
class Anchor:
    """The end of the chain as it was printed at some time."""

    seq: int
    hash: str


@dataclass(frozen=True)
class AuditCheck:
    """What a walk along the whole chain found. `problems` holds at most the first twenty."""

    rows: int
    head: Anchor
    problems: list[Text] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Tell whether the chain is whole."""
        return not self.problems


def record(s: Session, *, actor: Actor, action: str, object_kind: str, object_id: str, data: dict[str, Any]) -> AuditRow:
    """Append one row in the caller's transaction. `data` is plain JSON and never holds a secret.

    Raises Refused when another transaction moved the chain's end in between (only possible without row locks).
    """
    # A lock where the database has row locks; SQLite's write transaction is alone anyway.
    end = s.execute(select(AuditHead).where(AuditHead.id == HEAD_ID).with_for_update().execution_options(populate_existing=True)).scalar_one()
    row = AuditRow(
        seq=end.seq + 1,
        prev_hash=end.hash,
        at=now(),
        actor=actor.label,
        action=action,
        object_kind=object_kind,
        object_id=object_id,
        data=plain(data),
    )
    row.hash = row_hash(row)
    moved = s.execute(
        update(AuditHead).where(AuditHead.id == HEAD_ID, AuditHead.hash == row.prev_hash).values(seq=row.seq, hash=row.hash).returning(AuditHead.seq)
    ).all()
    if len(moved) != 1:
        raise Refused("audit_moved", N_("Somebody else changed something at the same moment. Nothing was saved; please try again."))
    s.add(row)
    s.flush()
    return row


def last_actor(s: Session, *, action: str, object_id: str) -> str:
    """Return who last did an action on an object, as the chain names actors; "?" where the chain knows of none."""
    rows = select(AuditRow.actor).where(AuditRow.object_id == object_id, AuditRow.action == action)
    return s.scalars(rows.order_by(AuditRow.seq.desc()).limit(1)).first() or "?"


def row_hash(row: AuditRow) -> str:
    """Return the hash of a row: SHA-256 over the canonical JSON of all its other fields."""
    return sha256_of(
        {
            "seq": row.seq,
            "prev_hash": row.prev_hash,
            "at": row.at.isoformat(timespec="microseconds"),
            "actor": row.actor,
            "action": row.action,
            "object_kind": row.object_kind,
            "object_id": row.object_id,
            "data": row.data,
        }
    )


def head(s: Session) -> Anchor:
    """Return the present end of the chain, to be printed where it cannot be taken back. Raises Refused when it was removed."""
    row = s.execute(select(AuditHead).where(AuditHead.id == HEAD_ID).execution_options(populate_existing=True)).scalar_one_or_none()
    if row is None:
        raise Refused("audit_headless", _HEADLESS)
    return Anchor(row.seq, row.hash)


def verify(s: Session, anchor: Anchor | None = None) -> AuditCheck:
    """Walk the whole chain. With an anchor, also prove that the chain still holds the row that was its end then."""
    problems: list[Text] = []
    rows, seq, previous = 0, 0, GENESIS
    anchored = anchor is None or anchor.seq == 0
    for number, digest, row in _rows(s):
        problems += _problems_of(number, digest, row, seq, previous)
        if anchor and number == anchor.seq:
            anchored = True
            if digest != anchor.hash:
                problems.append(pair(_REWRITTEN, seq=anchor.seq, stored=digest, anchor=anchor.hash))
        rows, seq, previous = rows + 1, number, digest
    end = Anchor(seq, previous)
    try:
        end = head(s)
    except Refused as error:
        problems.append(error.pair())
    if (end.seq, end.hash) != (seq, previous):
        problems.append(pair(_HEAD, stored=end.seq, last=seq))
    if anchor and not anchored:
        problems.append(pair(_TRUNCATED, seq=anchor.seq, last=seq))
    return AuditCheck(rows=rows, head=end, problems=problems[:SHOWN_PROBLEMS])


def _rows(s: Session) -> Iterator[tuple[int, str, AuditRow | None]]:
    """Yield number, stored hash and row in order; None for a row that cannot even be read, as after an edit past the service."""
    known = s.execute(select(AuditRow.seq, AuditRow.hash).order_by(AuditRow.seq)).all()
    for start in range(0, len(known), BATCH):
        part = known[start : start + BATCH]
        found = _read(s, [number for number, _ in part])
        if found is None:
            found = {number: row for number, _ in part for row in (_read(s, [number]) or {}).values()}
        yield from ((number, digest, found.get(number)) for number, digest in part)


def _read(s: Session, numbers: list[int]) -> dict[int, AuditRow] | None:
    query = select(AuditRow).where(AuditRow.seq.in_(numbers)).execution_options(populate_existing=True)
    try:
        return {row.seq: row for row in s.execute(query).scalars()}
    except _UNREADABLE_AS:
        return None


def _problems_of(number: int, digest: str, row: AuditRow | None, before: int, previous: str) -> list[Text]:
    """Compare one row with the row before it and with its own hash."""
    found = []
    if number != before + 1:
        found.append(pair(_GAP, before=before, seq=number))
    if row is None:
        return [*found, pair(_UNREADABLE, seq=number)]
    if row.prev_hash != previous:
        found.append(pair(_LINK, seq=number))
    try:
        fits = row_hash(row) == digest
    except _UNREADABLE_AS:
        return [*found, pair(_UNREADABLE, seq=number)]
    if not fits:
        found.append(pair(_EDITED, seq=number, action=row.action, at=row.at.isoformat()))
    return found


_UNREADABLE_AS = (ValueError, TypeError, AttributeError, SQLAlchemyError)  # what a field gives that holds something else than its kind
_GAP = N_("After row {before} comes row {seq}: the rows between them were removed.")
_LINK = N_("Row {seq} does not continue the row before it: a row was removed, added or altered.")
_EDITED = N_("Row {seq} ({action}, {at}) does not fit its own hash: it was altered after it was written.")
_UNREADABLE = N_("Row {seq} cannot be read: one of its fields holds what the service never writes. It was altered after it was written.")
_HEADLESS = N_("The row that says where the chain ends is gone: it was removed past the service.")
_HEAD = N_("The chain should end at row {stored}, and its last row is {last}: rows at the end were removed or added past the service.")
_TRUNCATED = N_("The anchor names row {seq}, and the chain ends at row {last}: its end was cut off after the anchor was printed.")
_REWRITTEN = N_("Row {seq} has the hash {stored}; the anchor says {anchor}: the chain was rewritten after the anchor was printed.")
