"""How a decision is shown: of the approvals alone, so that whatever is decided on can show its own."""

from __future__ import annotations

from typing import Any

from app.approvals.models import Approval
from app.kit.clock import stamp


def approval_view(given: Approval) -> dict[str, Any]:
    """Return one approval as every face shows it."""
    return {
        "id": given.id,
        "object_kind": given.object_kind,
        "object_id": given.object_id,
        "object_hash": given.object_hash,
        "party": given.party,
        "person": given.person,
        "role": given.role,
        "decision": given.decision,
        "comment": given.comment,
        "scan_sha256": given.scan_sha256,
        "at": stamp(given.at),
    }
