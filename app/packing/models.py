"""Revisions of an engagement's packing list: proposed by one, in force once both parties have approved."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint, event, inspect
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column

LATER = ("replaces", "agreed_at")


class PackingRevision(Base):
    """One proposed packing list, which never changes: both parties approve its hash; `replaces` and `agreed_at` are written then, once."""

    __tablename__ = "packing_revision"
    __table_args__ = (UniqueConstraint("engagement_id", "number"),)
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    number: Mapped[int]  # from 1; 0 is the list as the engagement was registered
    packing_list: Mapped[list[Any]]
    reason: Mapped[str] = mapped_column(Text)
    proposed_by: Mapped[str] = mapped_column(String(120))
    proposed_party: Mapped[str] = mapped_column(String(16))
    proposed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    replaces: Mapped[list[Any] | None]  # the list that was in force until then
    agreed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


@event.listens_for(PackingRevision, "before_update")
def _only_agreed_once(_mapper: Any, _connection: Any, target: PackingRevision) -> None:
    for attribute in inspect(target).attrs:
        changed = attribute.history.has_changes()
        if changed and (attribute.key not in LATER or any(attribute.history.deleted or ())):
            raise RuntimeError(f"{attribute.key} of packing revision {target.id} was about to be changed; propose another one")


@event.listens_for(PackingRevision, "before_delete")
def _kept(_mapper: Any, _connection: Any, target: PackingRevision) -> None:
    raise RuntimeError(f"packing revision {target.id} was about to be deleted; what was proposed stays on record")
