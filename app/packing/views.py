"""What page and API show of revisions of a packing list, made once; and what of one the parties approve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.approvals.models import Approval
from app.approvals.views import approval_view
from app.engagements.facts import decisions
from app.engagements.models import Engagement
from app.kit.clock import stamp
from app.packing import repository
from app.packing.models import PackingRevision
from gates.canonical import canonical_bytes, sha256_of
from gates.g1.packing import packing_warning


def digest(row: PackingRevision) -> str:
    """Return the hash of a revision as it was proposed: what the parties approve."""
    said = {key: getattr(row, key) for key in ("id", "engagement_id", "number", "packing_list", "reason", "proposed_by", "proposed_party")}
    return sha256_of({"schema": 1, **said, "proposed_at": stamp(row.proposed_at)})


def changes(before: Sequence[Any], after: Sequence[Any]) -> dict[str, list[Any]]:
    """Return which entries a list holds that the other does not, both ways: {removed, added}. A changed entry is one of each."""
    return {"removed": _beyond(before, after), "added": _beyond(after, before)}


def _beyond(these: Iterable[Any], those: Iterable[Any]) -> list[Any]:
    left = [canonical_bytes(entry) for entry in those]
    found = []
    for entry in these:
        key = canonical_bytes(entry)
        if key in left:
            left.remove(key)
        else:
            found.append(entry)
    return found


def state_of(row: PackingRevision, newest: int, given: Iterable[Approval]) -> str:
    """Return agreed, replaced (by a newer proposal), rejected or proposed."""
    if row.agreed_at is not None:
        return "agreed"
    if row.number < newest:
        return "replaced"
    return "rejected" if decisions(list(given), "packing", row.id, {digest(row)}).rejected else "proposed"


def packing_view(s: Session, engagement: Engagement, given: Sequence[Approval]) -> dict[str, Any]:
    """Return the packing list that is in force, what it lacks of the order, and every revision, the newest first."""
    rows = repository.revisions_of(s, engagement.id)
    newest = rows[-1].number if rows else 0
    warned = packing_warning(engagement.order, engagement.packing_list)
    return {
        "number": repository.number_in_force(s, engagement.id),
        "packing_list": engagement.packing_list,
        "warning": warned.json() if warned else None,
        "revisions": [_revision(row, newest, engagement, given) for row in reversed(rows)],
    }


def _revision(row: PackingRevision, newest: int, engagement: Engagement, given: Sequence[Approval]) -> dict[str, Any]:
    mine = [a for a in given if (a.object_kind, a.object_id) == ("packing", row.id)]
    before = engagement.packing_list if row.replaces is None else row.replaces
    warned = packing_warning(engagement.order, row.packing_list)
    return {
        "id": row.id,
        "number": row.number,
        "state": state_of(row, newest, mine),
        "hash": digest(row),
        "packing_list": row.packing_list,
        "changes": changes(before, row.packing_list),
        "warning": warned.json() if warned else None,
        "reason": row.reason,
        "proposed_by": row.proposed_by,
        "proposed_party": row.proposed_party,
        "proposed_at": stamp(row.proposed_at),
        "agreed_at": stamp(row.agreed_at),
        "approvals": [approval_view(a) for a in mine],
    }
