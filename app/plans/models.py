"""Plan revisions: canonical JSON and its hash. A sealed revision never changes."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class PlanRevision(Base):
    """One revision of an engagement's plan; sealed when both parties have approved its hash."""

    __tablename__ = "plan_revision"
    __table_args__ = (UniqueConstraint("engagement_id", "revision"),)
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    revision: Mapped[int]
    canonical: Mapped[str] = mapped_column(Text)  # RFC 8785
    hash: Mapped[str] = mapped_column(String(80))  # sha256:...
    sealed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_by: Mapped[str] = mapped_column(String(36))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
