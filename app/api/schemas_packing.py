"""What the API takes and gives about packing lists (as app/api/schemas.py)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from app.api.schemas import ApprovalView, Given, Taken, Words


class PackingBody(Taken):
    """A whole packing list, as an engagement file holds it, and why it is proposed."""

    packing_list: list[dict[str, Any]] = Field(
        examples=[
            [{"kind": "drive", "model": "QF-N7680", "serial": "QF26K0A00103", "host": "array01"}, {"kind": "cable", "model": "DAC", "quantity": 4}]
        ]
    )
    reason: str = Field(examples=["第二批货物已到 / the second consignment has come"])


class PackingChanges(Given):
    """Entries that one list holds and the other does not."""

    removed: list[dict[str, Any]]
    added: list[dict[str, Any]]


class PackingRevisionView(Given):
    """One proposed list. Only `agreed` is, or was, in force."""

    id: str
    number: int
    state: Literal["proposed", "rejected", "replaced", "agreed"]
    hash: str
    packing_list: list[dict[str, Any]]
    changes: PackingChanges
    warning: Words | None
    reason: str
    approvals: list[ApprovalView]


class PackingView(Given):
    """The packing list in force (`number` 0: as registered) and its revisions."""

    engagement_id: str
    number: int
    packing_list: list[dict[str, Any]]
    warning: Words | None
    closed: Words | None = Field(description="Why it cannot be revised any more; null while it can.")
    revisions: list[PackingRevisionView]
