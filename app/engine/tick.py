"""The safety net: every due row is hinted again. Harmless when doubled, since a hint is only a hint."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.attempts.models import Attempt
from app.engine import hints
from app.engine.claim import movable, unheld
from app.engine.models import Canary, Node
from app.engine.nodes import CANARY, stale
from app.engine.policy import CANARY_S, HINT_AGAIN_S
from app.engine.rows import insert_new
from app.kit.db import database_now, read_session, write_session
from app.settings import settings

log = logging.getLogger("quadgate.engine")


def tick() -> int:
    """Publish a hint for every due attempt, and the canary when it is time. Returns the number of hints."""
    try:
        return _tick()
    except OperationalError as error:  # stopped, or busy: the next tick is soon
        log.warning("tick: the database did not answer (%s)", type(error.orig).__name__)
        return 0


def _tick() -> int:
    with read_session() as s:  # most ticks find nothing, and then take no write lock
        now = database_now(s)
        busy = s.scalar(select(Attempt.id).where(*_due(now)).limit(1)) is not None
        canary = _canary_due(s, now)
    due: list[tuple[str, int, str]] = []
    nodes: list[str] = []
    if busy or canary:
        with write_session() as s:
            due = _take_due(s)
            nodes = _send_canary(s) if canary else []
    for attempt_id, generation, node in due:
        hints.publish_advance(attempt_id, generation, node)
    if canary:
        hints.publish("canary", [], queue=hints.TICK, expires_s=30)
        for node in nodes:
            hints.publish("heartbeat", [node], queue=hints.STEPS.format(node=node), expires_s=30)
    return len(due)


def _due(now: datetime) -> list[ColumnElement[bool]]:
    return [
        movable(),
        Attempt.next_due_at <= now,
        unheld(now),
        or_(
            Attempt.last_enqueued_at.is_(None),
            Attempt.last_enqueued_at < now - timedelta(seconds=HINT_AGAIN_S),
            Attempt.last_enqueued_at > now + timedelta(seconds=HINT_AGAIN_S),  # the clock was set back since
        ),
    ]


def _take_due(s: Session) -> list[tuple[str, int, str]]:
    """Stamp the due rows and return id, generation and the node whose queue is to be used."""
    now = database_now(s)
    rows = s.execute(
        update(Attempt)
        .where(*_due(now))
        .values(last_enqueued_at=now)
        .returning(Attempt.id, Attempt.generation, Attempt.node)
        .execution_options(synchronize_session=False)
    ).all()
    if not rows:
        return []
    silent = set(stale(s, now))
    living = list(s.scalars(select(Node.name).where(Node.name.not_in(silent)).order_by(Node.heartbeat_at.desc())))
    here = settings().node if settings().node in living or not living else living[0]
    return [(row.id, row.generation, row.node if row.node and row.node not in silent else here) for row in rows]


def _canary_due(s: Session, now: datetime) -> bool:
    row = s.get(Canary, CANARY)
    return row is None or row.sent_at is None or (now - row.sent_at).total_seconds() >= CANARY_S


def _send_canary(s: Session) -> list[str]:
    insert_new(s, Canary, [{"name": CANARY}], ("name",))  # two first ticks at once are no error
    s.execute(update(Canary).where(Canary.name == CANARY).values(sent_at=database_now(s)))
    return list(s.scalars(select(Node.name)))
