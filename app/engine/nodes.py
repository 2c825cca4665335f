"""Nodes and the canary: what is known of the machines whose workers start host processes."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.engine.models import Canary, Node
from app.engine.policy import NODE_STALE_S
from app.kit.db import database_now, write_session

CANARY = "engine"


def beat(node: str) -> None:
    """Note that a task of this node's own queue was just done: the node is alive in the only way that counts."""
    with write_session() as s:
        row = s.get(Node, node) or Node(name=node)
        row.heartbeat_at = database_now(s)
        s.add(row)


def canary_returned() -> None:
    """Note that the canary came back."""
    with write_session() as s:
        row = s.get(Canary, CANARY) or Canary(name=CANARY)
        row.returned_at = database_now(s)
        s.add(row)


def stale(s: Session, now: datetime) -> list[str]:
    """Return the nodes that may be taken over."""
    return list(s.scalars(select(Node.name).where(Node.heartbeat_at < now - timedelta(seconds=NODE_STALE_S))))


def canary_age_s(s: Session) -> float | None:
    """Return how long ago the canary last came back, None when it never did."""
    row = s.get(Canary, CANARY)
    return None if row is None or row.returned_at is None else (database_now(s) - row.returned_at).total_seconds()
