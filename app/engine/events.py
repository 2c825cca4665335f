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
from app.kit.errors import QuadgateError
from gates.text import Text

_TORN = Text(
    "The record of the playbook run {run} holds a line that is no whole event (byte {at} of {path}), so it is not complete. The usual cause is a "
    "disk that was full, or a file system that lost what was written. Make room, look at the disk, then retry: the run is ended and made again.",
    "剧本运行 {run} 的事件记录中有一行不完整（{path} 第 {at} 字节），记录不完整。常见原因是磁盘曾写满或文件系统丢失了已写入的数据。"
    "请清理空间并检查磁盘，然后重试：将终止该运行并重新执行。",
)
CHUNK = 4 * 1024 * 1024  # bytes a move; the rest comes with the next


class Torn(QuadgateError):  # noqa: N818 - a state of the record, like its siblings
    """A line of a run's events is no event: this run's record is not complete, and only this run is to be made again."""


def read_new(path: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """Return the whole lines after an offset and the offset behind them. Those before a line that is no event come first, then it raises Torn."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(CHUNK)
            while data and b"\n" not in data and (more := file.read(CHUNK)):
                data += more
    except FileNotFoundError:
        return [], offset
    events: list[dict[str, Any]] = []
    for line in data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]:
        event = _parsed(line)
        if event is None:
            if events:
                break
            raise Torn("events_torn", _TORN, run=path.parent.name, path=str(path), at=offset)
        events.append(event)
        offset += len(line) + 1
    return events, offset


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return one event as capture.py wrote it, None for anything else."""
    try:
        event = json.loads(line)
        whole = isinstance(event["data"], dict) and all(key in event for key in ("uuid", "counter", "event", "created", "stdout"))
    except (ValueError, KeyError, TypeError):
        return None
    return event if whole else None


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
