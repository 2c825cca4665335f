"""Every query about deviations, waivers and punch items."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.deviations.models import Deviation


def deviation(s: Session, deviation_id: str) -> Deviation | None:
    """Return an entry by id."""
    return s.get(Deviation, deviation_id)


def deviations_of(s: Session, engagement_id: str) -> list[Deviation]:
    """Return all entries of an engagement in the order of their numbers."""
    return list(s.execute(select(Deviation).where(Deviation.engagement_id == engagement_id).order_by(Deviation.number)).scalars())


def same_open_entries(s: Session, made: Deviation) -> list[Deviation]:
    """Return the entries that are not closed and say word for word what `made` says, from the same person."""
    told = ("engagement_id", "kind", "gate", "severity", "what", "reason", "owner_party", "owner", "due", "recorded_by", "recorded_party")
    same = [getattr(Deviation, name) == getattr(made, name) for name in told]
    return list(s.scalars(select(Deviation).where(*same, Deviation.closed_at.is_(None)).order_by(Deviation.number)))


def next_number(s: Session, engagement_id: str) -> int:
    """Return the number of the next entry; the engagement's row must be locked."""
    return 1 + (s.scalar(select(func.max(Deviation.number)).where(Deviation.engagement_id == engagement_id)) or 0)
