"""A clock that was set back by more than a correction: what was due in seconds by the old clock would be due in hours by the new one.

The canary is sent every few seconds, so its time of sending, when it lies ahead, tells by how much. Due times move back with the clock; those of
leases and hints are looked at as such by whoever reads them (engine/claim.py, engine/due.py).
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Step
from app.engine.claim import MOVING
from app.engine.models import Canary, Node
from app.engine.nodes import CANARY
from app.kit.db import database_now

log = logging.getLogger("quadgate.engine")
SET_BACK_S = 30.0  # less is lived with: what was due comes so much later


def by(s: Session, now: datetime) -> timedelta | None:
    """Return by how much the clock was set back since the last canary was sent; None where it was not."""
    sent = s.scalar(select(Canary.sent_at).where(Canary.name == CANARY))
    return sent - now if sent is not None and sent - now > timedelta(seconds=SET_BACK_S) else None


def move_due(s: Session) -> None:
    """Let what is due by the clock of before be due by the clock of now, and no node be heard from later than now: a dead one would have hours left.

    Its canary is to be sent again in the same transaction.
    """
    now = database_now(s)
    if (step := by(s, now)) is None:
        return
    log.warning("the clock was set back by %s s: due times move with it", round(step.total_seconds()))
    attempts = s.scalars(select(Attempt).where(Attempt.status.in_([str(one) for one in MOVING]), Attempt.next_due_at > now).with_for_update())
    for attempt in attempts:
        attempt.next_due_at = max(now, attempt.next_due_at - step) if attempt.next_due_at else None
        here = s.scalar(select(Step).where(Step.attempt_id == attempt.id, Step.position == attempt.step_index))
        if here is None:
            continue
        if ask_at := (here.result or {}).get("ask_at"):
            here.result = {**(here.result or {}), "ask_at": (datetime.fromisoformat(ask_at) - step).isoformat()}
        if here.expected_end_at is not None:
            here.expected_end_at -= step
    for node in s.scalars(select(Node).where(Node.heartbeat_at > now).with_for_update()):
        node.heartbeat_at = min(now, node.heartbeat_at - step)
