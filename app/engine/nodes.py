"""Nodes and the canary: what is known of the machines whose workers start host processes."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.orm import Session

from app.engine import sight
from app.engine.models import Canary, Node
from app.engine.policy import BEAT_S, NODE_STALE_S, SECOND_LOOK_S, SILENT_S
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
        row.heartbeat_at, row.silent_since, row.evidence_token, row.sees = at, None, seen.token, seen.sees
    sharing.withdraw(replaced)


def worked(s: Session, node: str) -> None:
    """Note that a worker of this node did something: a queue that is long keeps its heartbeat waiting, and is no silence."""
    at = database_now(s)
    lately = timedelta(seconds=BEAT_S)
    old = (Node.name == node, or_(Node.heartbeat_at < at - lately, Node.heartbeat_at > at + lately))  # clocks are set back too
    s.execute(update(Node).where(*old).values(heartbeat_at=at, silent_since=None).execution_options(synchronize_session=False))


def canary_returned() -> None:
    """Note that the canary came back."""
    with write_session() as s:
        insert_new(s, Canary, [{"name": CANARY}], ("name",))
        s.execute(update(Canary).where(Canary.name == CANARY).values(returned_at=database_now(s)))


def anyone_missing(s: Session, now: datetime) -> bool:
    """Tell whether a heartbeat is missing that nobody has noted yet."""
    return s.scalar(select(Node.name).where(_missing(now)).limit(1)) is not None


def note_missing(s: Session) -> None:
    """Note since when a heartbeat is missing. The next beat takes that back."""
    now = database_now(s)
    s.execute(update(Node).where(_missing(now)).values(silent_since=now).execution_options(synchronize_session=False))


def _missing(now: datetime) -> ColumnElement[bool]:
    return and_(Node.heartbeat_at < now - timedelta(seconds=SILENT_S), Node.silent_since.is_(None))


def stale(s: Session, now: datetime, after_s: float = NODE_STALE_S) -> list[str]:
    """Return the nodes that may be taken over: without a heartbeat for so long, and still without one a while after somebody saw that it is missing.

    A clock that jumps forward (a machine that was suspended, the first answer of NTP) makes all heartbeats old at once; whoever lives has beaten
    again by the second look.
    """
    silent = (Node.heartbeat_at < now - timedelta(seconds=after_s), Node.silent_since <= now - timedelta(seconds=SECOND_LOOK_S))
    return list(s.scalars(select(Node.name).where(*silent)))


def signs(s: Session, node: str) -> tuple[datetime | None, datetime | None]:
    """Return when the canary last came back and when a node last did something: who waits for the next compares, since the clock may be set."""
    canary, row = s.get(Canary, CANARY), s.get(Node, node)
    return canary.returned_at if canary else None, row.heartbeat_at if row else None


def canary_age_s(s: Session) -> float | None:
    """Return how long ago the canary last came back, None when it never did; one from ahead of the clock is as old as it lies ahead."""
    row = s.get(Canary, CANARY)
    return None if row is None or row.returned_at is None else abs((database_now(s) - row.returned_at).total_seconds())
