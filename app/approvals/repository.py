"""Every query about approvals, and the guard that none is ever changed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event, select
from sqlalchemy.orm import Session

from app.approvals.models import Approval


def approvals_of(s: Session, engagement_id: str) -> list[Approval]:
    """Return all approvals of an engagement in the order in which they were given."""
    query = select(Approval).where(Approval.engagement_id == engagement_id).order_by(Approval.at, Approval.id)
    return list(s.execute(query).scalars())


def approvals_for(s: Session, object_kind: str, object_id: str) -> list[Approval]:
    """Return the approvals of one object in the order in which they were given."""
    query = select(Approval).where(Approval.object_kind == object_kind, Approval.object_id == object_id).order_by(Approval.at, Approval.id)
    return list(s.execute(query).scalars())


@event.listens_for(Approval, "before_update")
@event.listens_for(Approval, "before_delete")
def _immutable(_mapper: Any, _connection: Any, target: Approval) -> None:
    raise RuntimeError(f"approval {target.id} was about to be changed; an approval is never changed, a new one is given")
