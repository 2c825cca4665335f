"""Deviations, waivers and punch items of an engagement (偏离、让步、遗留项)."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import Date, ForeignKey, String, Text, UniqueConstraint, event, inspect
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column

CLOSING = ("closed_at", "closed_by", "closed_party", "closing")


class Deviation(Base):
    """One entry of the register.

    `kind`: deviation (what was done differently), waiver (what both parties accept as it is), punch (what is still to do).

    What was recorded never changes; it can only be closed, once, with a note that says what was done.
    """

    __tablename__ = "deviation"
    __table_args__ = (UniqueConstraint("engagement_id", "number"),)
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    number: Mapped[int]  # counted through the whole engagement
    kind: Mapped[str] = mapped_column(String(12))
    gate: Mapped[str] = mapped_column(String(4))
    severity: Mapped[str] = mapped_column(String(8))  # major | minor
    what: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)
    owner_party: Mapped[str] = mapped_column(String(16))
    owner: Mapped[str] = mapped_column(String(120))
    due: Mapped[date] = mapped_column(Date)
    recorded_by: Mapped[str] = mapped_column(String(120))
    recorded_party: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    closed_by: Mapped[str] = mapped_column(String(120), default="")
    closed_party: Mapped[str] = mapped_column(String(16), default="")
    closing: Mapped[str] = mapped_column(Text, default="")


@event.listens_for(Deviation, "before_update")
def _only_closed_once(_mapper: Any, _connection: Any, target: Deviation) -> None:
    """Refuse every change but the closing: a register that can be rewritten proves nothing."""
    for attribute in inspect(target).attrs:
        changed = attribute.history.has_changes()
        if changed and (attribute.key not in CLOSING or any(attribute.history.deleted or ())):
            raise RuntimeError(f"{attribute.key} of deviation {target.id} was about to be changed; close it and record another one")


@event.listens_for(Deviation, "before_delete")
def _never_deleted(_mapper: Any, _connection: Any, target: Deviation) -> None:
    raise RuntimeError(f"deviation {target.id} was about to be deleted; it is closed instead")
