"""What web, API and reports show of deviations, waivers and punch items, made once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.approvals.models import Approval
from app.approvals.views import approval_view
from app.deviations import repository
from app.deviations.models import Deviation
from app.engagements.facts import decisions
from app.kit.clock import now, stamp
from gates.canonical import sha256_of

LETTERS = {"deviation": "D", "waiver": "W", "punch": "P"}


def label(row: Deviation) -> str:
    """Return the short name that people and reports use: D-3, W-4, P-5."""
    return f"{LETTERS[row.kind]}-{row.number}"


def digest(row: Deviation) -> str:
    """Return the hash of an entry as it was recorded: what the parties of a waiver approve."""
    names = ("engagement_id", "number", "kind", "gate", "severity", "what", "reason", "owner_party", "owner")
    return sha256_of({name: getattr(row, name) for name in names} | {"due": row.due.isoformat()})


def state_of(row: Deviation, given: Iterable[Approval]) -> str:
    """Return open or closed; of a waiver proposed, granted, rejected or closed. Granted changes no verdict and opens no gate."""
    if row.closed_at is not None:
        return "closed"
    if row.kind != "waiver":
        return "open"
    said = decisions(list(given), "waiver", row.id)
    if said.rejected:
        return "rejected"
    return "granted" if said.agreed else "proposed"


def deviation_view(row: Deviation, given: Sequence[Approval]) -> dict[str, Any]:
    """Return one entry as every face shows it; `given` are approvals of its engagement."""
    mine = [a for a in given if (a.object_kind, a.object_id) == ("waiver", row.id)]
    return {
        "id": row.id,
        "number": row.number,
        "label": label(row),
        "kind": row.kind,
        "gate": row.gate,
        "severity": row.severity,
        "what": row.what,
        "reason": row.reason,
        "owner_party": row.owner_party,
        "owner": row.owner,
        "due": row.due.isoformat(),
        "state": state_of(row, mine),
        "overdue": row.closed_at is None and now().date() > row.due,
        "hash": digest(row),
        "recorded_by": row.recorded_by,
        "recorded_party": row.recorded_party,
        "created_at": stamp(row.created_at),
        "closed_at": stamp(row.closed_at),
        "closed_by": row.closed_by,
        "closed_party": row.closed_party,
        "closing": row.closing,
        "approvals": [approval_view(a) for a in mine],
    }


def views_of(s: Session, engagement_id: str, given: Sequence[Approval]) -> list[dict[str, Any]]:
    """Return all entries of an engagement, those that are not closed first, each group by number."""
    shown = [deviation_view(row, given) for row in repository.deviations_of(s, engagement_id)]
    return sorted(shown, key=lambda item: (item["state"] == "closed", item["number"]))
