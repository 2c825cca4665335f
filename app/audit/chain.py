"""The audit chain: append one row for each state change, and prove that no row was altered, removed or cut off.

Each row's hash covers all its other fields and the hash of the row before. The end of the chain stands in one row that is moved by
compare-and-swap in the same transaction as the change it records, so the two cannot part. A chain alone cannot show that its end
was cut off: reports print `head`, and `verify` takes such a printed anchor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, update
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
    """Return the present end of the chain, to be printed where it cannot be taken back."""
    row = s.execute(select(AuditHead).where(AuditHead.id == HEAD_ID).execution_options(populate_existing=True)).scalar_one()
    return Anchor(row.seq, row.hash)


def verify(s: Session, anchor: Anchor | None = None) -> AuditCheck:
    """Walk the whole chain. With an anchor, also prove that the chain still holds the row that was its end then."""
    problems: list[Text] = []
    seq, previous = 0, GENESIS
    anchored = anchor is None or anchor.seq == 0
    rows = s.execute(select(AuditRow).order_by(AuditRow.seq).execution_options(populate_existing=True, yield_per=500)).scalars()
    for row in rows:
        problems += _problems_of(row, seq, previous)
        if anchor and row.seq == anchor.seq:
            anchored = True
            if row.hash != anchor.hash:
                problems.append(pair(_REWRITTEN, seq=anchor.seq, stored=row.hash, anchor=anchor.hash))
        seq, previous = row.seq, row.hash
    end = head(s)
    if (end.seq, end.hash) != (seq, previous):
        problems.append(pair(_HEAD, stored=end.seq, last=seq))
    if anchor and not anchored:
        problems.append(pair(_TRUNCATED, seq=anchor.seq, last=seq))
    return AuditCheck(rows=seq, head=end, problems=problems[:SHOWN_PROBLEMS])


def _problems_of(row: AuditRow, before: int, previous: str) -> list[Text]:
    """Compare one row with the row before it and with its own hash."""
    found = []
    if row.seq != before + 1:
        found.append(pair(_GAP, before=before, seq=row.seq))
    if row.prev_hash != previous:
        found.append(pair(_LINK, seq=row.seq))
    if row_hash(row) != row.hash:
        found.append(pair(_EDITED, seq=row.seq, action=row.action, at=row.at.isoformat()))
    return found


_GAP = N_("After row {before} comes row {seq}: the rows between them were removed.")
_LINK = N_("Row {seq} does not continue the row before it: a row was removed, added or altered.")
_EDITED = N_("Row {seq} ({action}, {at}) does not fit its own hash: it was altered after it was written.")
_HEAD = N_("The chain should end at row {stored}, and its last row is {last}: rows at the end were removed or added past the service.")
_TRUNCATED = N_("The anchor names row {seq}, and the chain ends at row {last}: its end was cut off after the anchor was printed.")
_REWRITTEN = N_("Row {seq} has the hash {stored}; the anchor says {anchor}: the chain was rewritten after the anchor was printed.")
