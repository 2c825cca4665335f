"""Rendered gate reports."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class Report(Base):
    """One PDF of one attempt in one language; the bytes lie in the evidence store under `sha256`."""

    __tablename__ = "report"
    __table_args__ = (UniqueConstraint("attempt_id", "language", "revision"),)
    id: Mapped[str] = id_column()
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    language: Mapped[str] = mapped_column(String(8))  # zh-CN | en
    revision: Mapped[int]
    number: Mapped[str] = mapped_column(String(80))  # ACC-<code>-<gate>-R<rev>
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)
    manifest_hash: Mapped[str] = mapped_column(String(80))
    verdict_hash: Mapped[str] = mapped_column(String(80))
    basis: Mapped[str] = mapped_column(String(80), default="")  # hash of all facts it rests on, the same in both languages: same basis, same revision
    at: Mapped[datetime] = mapped_column(UtcDateTime)
