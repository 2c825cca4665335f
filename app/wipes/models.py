"""Orders to wipe drives, and the files that a wipe brought home."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, String, Text, UniqueConstraint, event, inspect
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column

LATER = ("fence", "started_by", "started_at", "report", "finished_at", "withdrawn_by", "withdrawn_at", "withdrawn_why")


class WipeOrder(Base):
    """One order to wipe drives, named by serial number. While it is carried out it holds its targets' locks, as an attempt does.

    What was ordered never changes: both parties approve its hash. What became of it is written once, field by field.
    """

    __tablename__ = "wipe_order"
    __table_args__ = (UniqueConstraint("engagement_id", "number"),)
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    number: Mapped[int]  # counted through the whole engagement
    way: Mapped[str] = mapped_column(String(20))  # app.wipes.views.WAYS
    drives: Mapped[list[Any]]  # [{"serial", "model", "host"}], by host and serial
    reason: Mapped[str] = mapped_column(Text)
    ordered_by: Mapped[str] = mapped_column(String(120))
    ordered_party: Mapped[str] = mapped_column(String(16))
    ordered_at: Mapped[datetime] = mapped_column(UtcDateTime)
    withdrawn_by: Mapped[str] = mapped_column(String(120), default="")
    withdrawn_why: Mapped[str] = mapped_column(Text, default="")
    withdrawn_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    fence: Mapped[int] = mapped_column(default=0)
    started_by: Mapped[str] = mapped_column(String(120), default="")
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    report: Mapped[dict[str, Any] | None]  # {"drives": [{"serial", "host", "outcome", "why", ...}], "problem": Text | None}


class WipeFile(Base):
    """One file that a wipe brought home: the records, their journal, the return slip. The bytes lie in the content-addressed store."""

    __tablename__ = "wipe_file"
    __table_args__ = (UniqueConstraint("wipe_order_id", "host", "name"),)
    id: Mapped[str] = id_column()
    wipe_order_id: Mapped[str] = mapped_column(ForeignKey("wipe_order.id"))
    host: Mapped[str] = mapped_column(String(120))
    name: Mapped[str] = mapped_column(String(200))
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)


@event.listens_for(WipeOrder, "before_update")
def _only_carried_out_once(_mapper: Any, _connection: Any, target: WipeOrder) -> None:
    """Refuse every change of what was ordered, and a second end: what both parties approved, and what became of it, is not rewritten."""
    for attribute in inspect(target).attrs:
        changed = attribute.history.has_changes()
        if changed and (attribute.key not in LATER or any(attribute.history.deleted or ())):
            raise RuntimeError(f"{attribute.key} of wipe order {target.id} was about to be changed; withdraw it and order another one")


@event.listens_for(WipeOrder, "before_delete")
@event.listens_for(WipeFile, "before_update")
@event.listens_for(WipeFile, "before_delete")
def _kept(_mapper: Any, _connection: Any, target: WipeOrder | WipeFile) -> None:
    raise RuntimeError(f"{type(target).__name__} {target.id} was about to be changed or deleted; the record of a wipe is kept as it is")
