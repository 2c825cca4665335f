"""Bringing the events of a run from its directory into the database: each once, however often it is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.attempts.models import StepEvent
from app.engine.rows import insert_new
from app.kit.clock import now

CHUNK = 4 * 1024 * 1024  # bytes a move; the rest comes with the next


def read_new(path: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines after an offset and the offset behind them."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(CHUNK)
            while data and b"\n" not in data and (more := file.read(CHUNK)):
                data += more
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return [json.loads(line) for line in whole.splitlines()], offset + len(whole)


def storing(attempt_id: str, step_id: str, run: str, events: list[dict[str, Any]]) -> Callable[[Session], None]:
    """Return the write that stores events; one that is there already is left alone."""

    def write(s: Session) -> None:
        rows = [
            {
                "attempt_id": attempt_id,
                "step_id": step_id,
                "run": run,
                "uuid": event["uuid"],
                "counter": event["counter"],
                "kind": event["event"],
                "host": str(event["data"].get("host") or "")[:120],
                "task": str(event["data"].get("task") or "")[:255],
                "stdout": event["stdout"],
                "data": event["data"],
                "at": _time(event["created"]),
            }
            for event in events
        ]
        insert_new(s, StepEvent, rows, ("step_id", "run", "uuid"))

    return write


def stored(s: Session, step_id: str, run: str, new: Sequence[Mapping[str, Any]] = ()) -> int:
    """Return how many events of a run are stored, or will be once those of `new` are: an event that is there already is not counted twice."""
    ours = (StepEvent.step_id == step_id, StepEvent.run == run)
    if not new:
        return s.scalar(select(func.count()).select_from(StepEvent).where(*ours)) or 0
    return len({*s.scalars(select(StepEvent.uuid).where(*ours)), *(event["uuid"] for event in new)})


def _time(text: str) -> datetime:
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return now()
    return value if value.tzinfo else value.replace(tzinfo=UTC)
