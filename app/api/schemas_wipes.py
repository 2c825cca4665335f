"""What the API takes and gives about wipes (as app/api/schemas.py)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.schemas import Given, Taken, Words


class WipeBody(Taken):
    """Drives by serial number, in which way, and why."""

    way: Literal["sanitize_block", "sanitize_crypto", "sanitize_overwrite", "format_user", "format_crypto"]
    serials: list[str] = Field(min_length=1, max_length=1000, examples=[["QF26K0A00101", "QF26K0A00102"]])
    reason: str = Field(min_length=2, max_length=2000)


class WithdrawBody(Taken):
    """Why an order is withdrawn."""

    reason: str = Field(min_length=2, max_length=2000)


class WipeRecord(Given):
    """What became of one drive."""

    serial: str
    host: str
    outcome: Literal["wiped", "failed", "unknown"]
    why: str


class WipeView(Given):
    """A wipe order. Only `wiped` means that every drive of it is blank by its own record."""

    id: str
    label: str
    state: Literal["proposed", "rejected", "withdrawn", "approved", "running", "wiped", "not_wiped"]
    way: str
    drives: list[dict[str, Any]]
    reason: str
    hash: str = Field(description="What both parties approve.")
    records: list[WipeRecord]
    problem: Words | None
    files: list[dict[str, Any]]
    approvals: list[dict[str, Any]]


class WipeList(BaseModel):
    """The wipes of an engagement, and the drives that can be ordered."""

    items: list[WipeView]
    drives: list[dict[str, Any]]
