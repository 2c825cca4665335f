"""Evidence files of attempts, and files that wait for a form to be handed in; the bytes of both lie in the content-addressed store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class EvidenceFile(Base):
    """One file that a step brought back. `path` is its name in the bundle: evidence/<step key>/<host>/<file>."""

    __tablename__ = "evidence_file"
    __table_args__ = (UniqueConstraint("attempt_id", "path"),)
    id: Mapped[str] = id_column()
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    step_id: Mapped[str | None] = mapped_column(ForeignKey("step.id"))
    path: Mapped[str] = mapped_column(String(300))
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)
    host: Mapped[str] = mapped_column(String(120), default="")
    tool: Mapped[str] = mapped_column(String(60), default="")
    tool_version: Mapped[str] = mapped_column(String(120), default="")
    argv: Mapped[list[Any] | None]
    exit_code: Mapped[int | None]
    clocks: Mapped[dict[str, Any] | None]
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class KeptUpload(Base):
    """A file that came with a form which was refused for something else. It is nobody's evidence until its owner hands the form in.

    `place` is the one form that it belongs to, as `app.evidence.uploads.place_of` names it.
    """

    __tablename__ = "kept_upload"
    __table_args__ = (Index("ix_kept_upload_user_place", "user_id", "place"),)
    id: Mapped[str] = id_column()
    user_id: Mapped[str] = mapped_column(ForeignKey("user_account.id"))
    place: Mapped[str] = mapped_column(String(80))
    name: Mapped[str] = mapped_column(String(120))
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime] = mapped_column(UtcDateTime)
