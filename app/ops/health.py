"""Is work done? Five questions, each with its own answer.

The database takes a write, the broker answers, a task came back, a node beats, and all nodes have one evidence store.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.exc import SQLAlchemyError

from app.engine import nodes, sight
from app.engine.models import Canary, Node
from app.engine.nodes import CANARY
from app.kit.clock import stamp
from app.kit.db import database_now, read_session, write_session
from app.kit.errors import Refused
from app.ops import broker

FRESH_S = 90.0  # as long as a node's heartbeat keeps it from being taken over (engine.policy.NODE_STALE_S)


@dataclass(frozen=True)
class Answer:
    """The answer to one question of health: a word for machines, a detail for whoever looks."""

    ok: bool
    detail: str


@dataclass(frozen=True)
class Health:
    """All answers. `ready` means that what is asked of the service now gets done."""

    answers: dict[str, Answer]
    canary_returned_at: datetime | None = None

    @property
    def ready(self) -> bool:
        """Tell whether every answer is good."""
        return all(answer.ok for answer in self.answers.values())

    def json(self) -> dict[str, Any]:
        """Return the body of /readyz."""
        checks = {name: {"ok": answer.ok, "detail": answer.detail} for name, answer in self.answers.items()}
        return {"status": "ready" if self.ready else "not ready", "checks": checks, "canary_returned_at": stamp(self.canary_returned_at)}


def look() -> Health:
    """Ask all five. Never raises: what cannot be asked is not ready, with the reason's kind."""
    takes_writes = _database()
    takes_hints = Answer(True, "answers") if broker.answers() else Answer(False, "does not answer")
    if not takes_writes.ok:
        unknown = Answer(False, "unknown: the database does not answer")
        return Health({"database": takes_writes, "broker": takes_hints, "canary": unknown, "heartbeat": unknown, "evidence": unknown})
    with read_session() as s:
        at = database_now(s)
        returned = s.scalar(select(Canary.returned_at).where(Canary.name == CANARY))
        beat = s.scalar(select(func.max(Node.heartbeat_at)))
        blind = sight.blind(s, at, nodes.stale(s, at))
    answers = {
        "database": takes_writes,
        "broker": takes_hints,
        "canary": _fresh(at, returned, "a task came back"),
        "heartbeat": _fresh(at, beat, "a node's own queue was worked on"),
        "evidence": Answer(not blind, "; ".join(blind) or "all nodes have one evidence store"),
    }
    return Health(answers, returned)


def _database() -> Answer:
    """Take the write lock and change a row, then take it back: a full disk, a read-only or a recovering server does not let us."""
    try:
        with write_session() as s:
            s.execute(update(Canary).where(Canary.name == CANARY).values(sent_at=Canary.sent_at).execution_options(synchronize_session=False))
            s.rollback()
    except Refused:
        return Answer(False, "is not there")
    except SQLAlchemyError as error:
        return Answer(False, f"takes no write ({type(getattr(error, 'orig', None) or error).__name__})")
    return Answer(True, "takes writes")


def _fresh(at: datetime, seen: datetime | None, what: str) -> Answer:
    if seen is None:
        return Answer(False, f"never yet: {what}")
    age = (at - seen).total_seconds()
    if age < -FRESH_S:
        return Answer(False, f"{what} {-age:.0f} s ahead of the clock, which was set back; not since then")
    return Answer(age <= FRESH_S, f"{what} {max(0.0, age):.0f} s ago")
