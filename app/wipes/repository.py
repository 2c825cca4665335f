"""Every query about orders to wipe, and their files."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.wipes.models import WipeFile, WipeOrder


def order(s: Session, order_id: str, *, lock: bool = False) -> WipeOrder | None:
    """Return an order by id; `lock`: nobody else writes it until this transaction ends."""
    return s.get(WipeOrder, order_id, with_for_update=True, populate_existing=True) if lock else s.get(WipeOrder, order_id)


def orders_of(s: Session, engagement_id: str) -> list[WipeOrder]:
    """Return all orders of an engagement in the order of their numbers."""
    return list(s.execute(select(WipeOrder).where(WipeOrder.engagement_id == engagement_id).order_by(WipeOrder.number)).scalars())


def next_number(s: Session, engagement_id: str) -> int:
    """Return the number of the next order; the engagement's row must be locked."""
    return 1 + (s.scalar(select(func.max(WipeOrder.number)).where(WipeOrder.engagement_id == engagement_id)) or 0)


def files_of(s: Session, order_id: str) -> list[WipeFile]:
    """Return the files that a wipe brought home, by host and name."""
    return list(s.execute(select(WipeFile).where(WipeFile.wipe_order_id == order_id).order_by(WipeFile.host, WipeFile.name)).scalars())


def file(s: Session, file_id: str) -> WipeFile | None:
    """Return one of these files by id."""
    return s.get(WipeFile, file_id)
