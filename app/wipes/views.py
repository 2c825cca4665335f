"""What page, API and command line show of orders to wipe, made once; and what of an order the parties approve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.approvals import repository as approvals
from app.approvals.models import Approval
from app.approvals.views import approval_view
from app.engagements.facts import decisions
from app.kit.clock import stamp
from app.wipes import repository
from app.wipes.models import WipeFile, WipeOrder
from gates.canonical import sha256_of

# What the drive's own firmware is told (NVMe base specification: Sanitize Action, Secure Erase Settings of Format NVM).
WAYS: dict[str, dict[str, Any]] = {
    "sanitize_block": {"method": "sanitize", "action": "block"},
    "sanitize_crypto": {"method": "sanitize", "action": "crypto"},
    "sanitize_overwrite": {"method": "sanitize", "action": "overwrite"},
    "format_user": {"method": "format", "ses": 1},
    "format_crypto": {"method": "format", "ses": 2},
}
REJECTED = "rejected"
WIPED = "wiped"  # the one outcome of a drive that may leave the site


def label(row: WipeOrder) -> str:
    """Return the short name that people use: E-1."""
    return f"E-{row.number}"


def content(row: WipeOrder) -> dict[str, Any]:
    """Return what was ordered, as both parties approve it and as the play is told: way and drives by serial number, who ordered it, why."""
    return {
        "schema": 1,
        "id": row.id,
        "engagement_id": row.engagement_id,
        "number": row.number,
        **WAYS[row.way],
        "drives": row.drives,
        "reason": row.reason,
        "ordered_by": row.ordered_by,
        "ordered_party": row.ordered_party,
        "ordered_at": stamp(row.ordered_at),
    }


def digest(row: WipeOrder) -> str:
    """Return the hash of an order as it was written: what the parties approve."""
    return sha256_of(content(row))


def hosts_of(row: WipeOrder) -> list[str]:
    """Return the hosts in which the drives are."""
    return sorted({str(drive["host"]) for drive in row.drives})


def serials_of(row: WipeOrder) -> list[str]:
    """Return the serial numbers that are ordered to be wiped."""
    return [str(drive["serial"]) for drive in row.drives]


def state_of(row: WipeOrder, given: Iterable[Approval]) -> str:
    """Return proposed, rejected, approved, withdrawn, running, wiped (every drive) or not_wiped (one at least is not, or is not known to be)."""
    if row.finished_at is not None:
        drives = (row.report or {}).get("drives") or []
        whole = sorted(str(drive["serial"]) for drive in drives) == sorted(serials_of(row))
        return WIPED if whole and all(drive["outcome"] == WIPED for drive in drives) else "not_wiped"
    if row.started_at is not None:
        return "running"
    if row.withdrawn_at is not None:
        return "withdrawn"
    said = decisions(list(given), "wipe", row.id, {digest(row)})
    if said.rejected:
        return REJECTED
    return "approved" if said.agreed else "proposed"


def wipe_view(row: WipeOrder, given: Sequence[Approval], files: Sequence[WipeFile]) -> dict[str, Any]:
    """Return one order as every face shows it; `given` are approvals of its engagement."""
    mine = [a for a in given if (a.object_kind, a.object_id) == ("wipe", row.id)]
    report = row.report or {}
    return {
        "id": row.id,
        "number": row.number,
        "label": label(row),
        "state": state_of(row, mine),
        "way": row.way,
        "drives": row.drives,
        "reason": row.reason,
        "hash": digest(row),
        "ordered_by": row.ordered_by,
        "ordered_party": row.ordered_party,
        "ordered_at": stamp(row.ordered_at),
        "withdrawn_by": row.withdrawn_by,
        "withdrawn_why": row.withdrawn_why,
        "withdrawn_at": stamp(row.withdrawn_at),
        "started_by": row.started_by,
        "started_at": stamp(row.started_at),
        "finished_at": stamp(row.finished_at),
        "records": report.get("drives") or [],
        "problem": report.get("problem"),
        "files": [{"id": f.id, "host": f.host, "name": f.name, "sha256": f.sha256, "size": f.size} for f in files],
        "approvals": [approval_view(a) for a in mine],
    }


def brief(s: Session, engagement_id: str) -> list[dict[str, Any]]:
    """Return label and state of each order of an engagement that whoever asks may see, the newest first."""
    return [{key: view[key] for key in ("label", "state")} for view in views_of(s, engagement_id, approvals.approvals_of(s, engagement_id))]


def views_of(s: Session, engagement_id: str, given: Sequence[Approval]) -> list[dict[str, Any]]:
    """Return all orders of an engagement, the newest first."""
    return [wipe_view(row, given, repository.files_of(s, row.id)) for row in reversed(repository.orders_of(s, engagement_id))]
