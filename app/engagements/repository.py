"""Every query about engagements."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.engagements.models import Engagement


def engagement(s: Session, engagement_id: str, *, lock: bool = False) -> Engagement | None:
    """Return an engagement by id; with `lock`, no other transaction decides about it until this one ends.

    Whatever was read on the way to the lock is read anew behind it: somebody else may have changed it while we waited.
    """
    if not lock:
        return s.get(Engagement, engagement_id)
    s.flush()
    s.expire_all()
    return s.get(Engagement, engagement_id, with_for_update=True, populate_existing=True)


def by_code(s: Session, code: str) -> Engagement | None:
    """Return an engagement by its code."""
    return s.execute(select(Engagement).where(Engagement.code == code)).scalar_one_or_none()


def engagements(s: Session) -> list[Engagement]:
    """Return all engagements, the newest first."""
    return list(s.execute(select(Engagement).order_by(Engagement.created_at.desc(), Engagement.id.desc())).scalars())
