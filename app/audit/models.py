"""The audit chain: every state change, each row bound to the one before by its hash."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime


class AuditRow(Base):
    """One row of the chain: hash = SHA-256 over the canonical JSON of all other fields."""

    __tablename__ = "audit_row"
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    prev_hash: Mapped[str] = mapped_column(String(80), unique=True)
    hash: Mapped[str] = mapped_column(String(80), unique=True)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
    actor: Mapped[str] = mapped_column(String(120))
    action: Mapped[str] = mapped_column(String(60))
    object_kind: Mapped[str] = mapped_column(String(40))
    object_id: Mapped[str] = mapped_column(String(80))
    data: Mapped[dict[str, Any]]


class AuditHead(Base):
    """The single row that holds the chain's end; moved by compare-and-swap in the same transaction as the audited change."""

    __tablename__ = "audit_head"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seq: Mapped[int]
    hash: Mapped[str] = mapped_column(String(80))
