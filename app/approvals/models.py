"""Approvals: immutable records of who agreed to which object, by its hash."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class Approval(Base):
    """One decision of one person for one party. A rejection may be followed by the same person's approval, which takes it back.

    `object_kind`: plan (seals), conditional (consents), sign_off (signs a gate's report), rig_cause (an attempt does not count),
    soak_cause (the soak clock restarts at an event), waiver (accepts a thing as it is), stop_loss (lifts a stop), close (closes an
    engagement that was not concluded), wipe (lets drives be wiped, by serial number), packing (puts a revised packing list in force).
    `object_hash` is what was looked at: plan hash, verdict hash, report manifest hash, hash of a wipe order or of a revision of the packing list.
    """

    __tablename__ = "approval"
    __table_args__ = (UniqueConstraint("object_kind", "object_id", "object_hash", "user_id", "decision"),)  # an approval is final
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    object_kind: Mapped[str] = mapped_column(String(20))
    object_id: Mapped[str] = mapped_column(String(36))
    object_hash: Mapped[str] = mapped_column(String(80))
    party: Mapped[str] = mapped_column(String(16))
    user_id: Mapped[str] = mapped_column(ForeignKey("user_account.id"))
    person: Mapped[str] = mapped_column(String(120))
    role: Mapped[str] = mapped_column(String(120))
    decision: Mapped[str] = mapped_column(String(16))  # approve | reject
    comment: Mapped[str] = mapped_column(Text, default="")
    scan_sha256: Mapped[str | None] = mapped_column(String(64))  # scan of the printed, signed and stamped report
    at: Mapped[datetime] = mapped_column(UtcDateTime)
