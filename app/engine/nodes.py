"""Nodes and the canary: what is known of the machines whose workers start host processes."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.engine import sight
from app.engine.models import Canary, Node
from app.engine.policy import BEAT_S, NODE_STALE_S
from app.engine.rows import insert_new
from app.evidence import sharing
from app.kit.db import database_now, write_session

CANARY = "engine"


def beat(node: str, *, began: bool = False) -> None:
    """Note that a task of this node's own queue was just done: the node is alive in the only way that counts. And whose evidence it sees.

    `began`: a worker of it has just started, and shows a new file in the evidence store.
    """
    seen = sight.look(node, anew=began)
    with write_session() as s:
        at = database_now(s)
        insert_new(s, Node, [{"name": node, "heartbeat_at": at}], ("name",))  # a worker's start and its first task may come at once
        row = s.get_one(Node, node, with_for_update=True)
        replaced = row.evidence_token if row.evidence_token != seen.token else None  # not always `seen.before`: two workers may begin at once
        row.heartbeat_at, row.evidence_token, row.sees = at, seen.token, seen.sees
    sharing.withdraw(replaced)


def worked(s: Session, node: str) -> None:
    """Note that a worker of this node did something: a queue that is long keeps its heartbeat waiting, and is no silence."""
    at = database_now(s)
    old = (Node.name == node, Node.heartbeat_at < at - timedelta(seconds=BEAT_S))
    s.execute(update(Node).where(*old).values(heartbeat_at=at).execution_options(synchronize_session=False))


def canary_returned() -> None:
    """Note that the canary came back."""
    with write_session() as s:
        insert_new(s, Canary, [{"name": CANARY}], ("name",))
        s.execute(update(Canary).where(Canary.name == CANARY).values(returned_at=database_now(s)))


def stale(s: Session, now: datetime) -> list[str]:
    """Return the nodes that may be taken over."""
    return list(s.scalars(select(Node.name).where(Node.heartbeat_at < now - timedelta(seconds=NODE_STALE_S))))


def heartbeat_age_s(s: Session, node: str) -> float | None:
    """Return how long ago a node last did something, None when it never did."""
    row = s.get(Node, node)
    return None if row is None else (database_now(s) - row.heartbeat_at).total_seconds()


def canary_age_s(s: Session) -> float | None:
    """Return how long ago the canary last came back, None when it never did."""
    row = s.get(Canary, CANARY)
    return None if row is None or row.returned_at is None else (database_now(s) - row.returned_at).total_seconds()
