"""Every query about plan revisions."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.plans.models import PlanRevision


def revisions(s: Session, engagement_id: str) -> list[PlanRevision]:
    """Return all revisions of an engagement, the newest last."""
    query = select(PlanRevision).where(PlanRevision.engagement_id == engagement_id).order_by(PlanRevision.revision)
    return list(s.execute(query).scalars())


def revision(s: Session, plan_id: str) -> PlanRevision | None:
    """Return a revision by id."""
    return s.get(PlanRevision, plan_id)
