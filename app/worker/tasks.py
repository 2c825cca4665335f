"""The tasks: what a message asks for, in three lines each. All rules stand in the engine."""

from __future__ import annotations

from typing import Any

from app.engine import nodes
from app.engine.advance import advance as advance_attempt
from app.engine.advance import advance_heavy as advance_heavy_attempt
from app.engine.tick import tick as tick_once
from app.kit import traces
from app.ops import janitor
from app.worker.app import app

MOVE_S, HEAVY_S = 900, 3600  # a pack from a slow disk, a soak's judgement; most moves take milliseconds, and all renew their lease


@app.task(name="advance", bind=True, soft_time_limit=MOVE_S, time_limit=MOVE_S + 60)  # type: ignore[untyped-decorator]
def advance(self: Any, attempt_id: str, generation: int | None) -> None:
    """Move an attempt, if it is still at that generation."""
    advance_attempt(attempt_id, generation, parent=str((self.request.headers or {}).get(traces.HEADER) or ""))


@app.task(name="advance_heavy", bind=True, soft_time_limit=HEAVY_S, time_limit=HEAVY_S + 60)  # type: ignore[untyped-decorator]
def advance_heavy(self: Any, attempt_id: str, generation: int | None) -> None:
    """Judge or print, when a child is free for it."""
    advance_heavy_attempt(attempt_id, generation, parent=str((self.request.headers or {}).get(traces.HEADER) or ""))


@app.task(name="tick")  # type: ignore[untyped-decorator]
def tick() -> None:
    """Hint all that is due."""
    tick_once()


@app.task(name="canary")  # type: ignore[untyped-decorator]
def canary() -> None:
    """Come back: the proof that work gets done."""
    nodes.canary_returned()


@app.task(name="heartbeat")  # type: ignore[untyped-decorator]
def heartbeat(node: str) -> None:
    """Show that this node's own queue is worked on, and clean up now and then."""
    nodes.beat(node)
    janitor.sweep_when_due()
