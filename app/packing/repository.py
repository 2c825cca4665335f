"""Every query about revisions of packing lists."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.engagements.models import Engagement
from app.packing.models import PackingRevision


def revision(s: Session, revision_id: str) -> PackingRevision | None:
    """Return a revision by id."""
    return s.get(PackingRevision, revision_id)


def revisions_of(s: Session, engagement_id: str) -> list[PackingRevision]:
    """Return all revisions of an engagement's packing list in the order of their numbers."""
    return list(s.execute(select(PackingRevision).where(PackingRevision.engagement_id == engagement_id).order_by(PackingRevision.number)).scalars())


def next_number(s: Session, engagement_id: str) -> int:
    """Return the number of the next revision; the engagement's row must be locked."""
    return 1 + (s.scalar(select(func.max(PackingRevision.number)).where(PackingRevision.engagement_id == engagement_id)) or 0)


def number_in_force(s: Session, engagement_id: str) -> int:
    """Return the number of the revision that is in force; 0: the list as it was registered."""
    agreed = PackingRevision.engagement_id == engagement_id, PackingRevision.agreed_at.is_not(None)
    return s.scalar(select(func.max(PackingRevision.number)).where(*agreed)) or 0


def list_of(s: Session, engagement: Engagement, number: int) -> list[Any]:
    """Return the packing list that was in force as revision `number` (0: as registered): what an attempt that began under it is judged by."""
    agreed = [r for r in revisions_of(s, engagement.id) if r.agreed_at is not None]
    for row in agreed:
        if row.number == number:
            return row.packing_list
    return (agreed[0].replaces or []) if agreed else engagement.packing_list
