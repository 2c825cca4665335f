"""Every query about evidence files."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.evidence.models import EvidenceFile


def files_of(s: Session, attempt_id: str) -> list[EvidenceFile]:
    """Return an attempt's evidence files by path."""
    return list(s.execute(select(EvidenceFile).where(EvidenceFile.attempt_id == attempt_id).order_by(EvidenceFile.path)).scalars())


def file_at(s: Session, attempt_id: str, path: str) -> EvidenceFile | None:
    """Return the evidence file of a path."""
    query = select(EvidenceFile).where(EvidenceFile.attempt_id == attempt_id, EvidenceFile.path == path)
    return s.execute(query).scalar_one_or_none()
