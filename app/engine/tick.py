"""The safety net: what is due is hinted, and again when the hint got lost. Harmless when doubled, since a hint is only a hint."""

from __future__ import annotations

import logging
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.engine import due, hints, holders, nodes, set_back, sight
from app.engine.models import Canary, Node
from app.engine.nodes import CANARY
from app.engine.policy import CANARY_S
from app.engine.rows import insert_new
from app.kit.db import database_now, read_session, write_session

log = logging.getLogger("quadgate.engine")


def tick() -> int:
    """Publish hints for what is due, and the canary when it is time. Returns the number of hints."""
    try:
        return _tick()
    except OperationalError as error:  # stopped, or busy: the next tick is soon
        log.warning("tick: the database did not answer (%s)", type(error.orig).__name__)
        return 0


def _tick() -> int:
    holders.let_go()
    with read_session() as s:  # most ticks find nothing, and then take no write lock
        seen = due.look(s) if due.anything(s) else None
        canary = _canary_due(s, database_now(s)) or set_back.by(s, database_now(s)) is not None
        missing = nodes.anyone_missing(s, database_now(s))
    chosen = seen.chosen(hints.waiting(seen.doubted())) if seen else []
    names: list[str] = []
    stranded = seen.stranded if seen else []
    if chosen or canary or missing or stranded:
        with write_session() as s:
            set_back.move_due(s)
            if missing:
                nodes.note_missing(s)
            if stranded:
                sight.tell(s, stranded)
            chosen = due.stamp(s, chosen)
            names = _send_canary(s) if canary else []
    for row in chosen:
        hints.publish_advance(row.attempt_id, row.generation, row.node, row.kind)
    if canary:
        hints.publish("canary", [], queue=hints.TICK, expires_s=30)
        for node in names:
            hints.publish("heartbeat", [node], queue=hints.STEPS.format(node=node), expires_s=30)
    return len(chosen)


def _canary_due(s: Session, now: datetime) -> bool:
    row = s.get(Canary, CANARY)
    return row is None or row.sent_at is None or (now - row.sent_at).total_seconds() >= CANARY_S


def _send_canary(s: Session) -> list[str]:
    insert_new(s, Canary, [{"name": CANARY}], ("name",))  # two first ticks at once are no error
    s.execute(update(Canary).where(Canary.name == CANARY).values(sent_at=database_now(s)))
    return list(s.scalars(select(Node.name)))
