"""An engagement: one customer's joint test."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class Engagement(Base):
    """Parties, site, contract, order, packing list, targets. `state`: draft, active, stopped, not_concluded, concluded, closed."""

    __tablename__ = "engagement"
    id: Mapped[str] = id_column()
    code: Mapped[str] = mapped_column(String(40), unique=True)
    customer: Mapped[str] = mapped_column(String(200))  # legal name
    vendor: Mapped[str] = mapped_column(String(200))  # legal name
    site: Mapped[str] = mapped_column(String(200))
    contract: Mapped[str] = mapped_column(String(80))
    people: Mapped[dict[str, Any]]
    order: Mapped[dict[str, Any]] = mapped_column("purchase_order")
    packing_list: Mapped[list[Any]]
    targets: Mapped[dict[str, Any]]  # the section `targets` of the engagement file; secrets are references only
    source_yaml: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(String(20), default="draft")
    state_reason: Mapped[dict[str, Any] | None]  # {"en": ..., "zh-CN": ...} and what it rests on
    g2_baseline: Mapped[dict[str, Any] | None]  # frozen by a passed G2: {"hash", "attempt", "tiers": {...}}
    version: Mapped[int] = mapped_column(default=1)
    created_by: Mapped[str] = mapped_column(String(36))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
