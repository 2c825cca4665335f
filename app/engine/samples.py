"""Lines of a job's journals, brought by polls for the live page. Pure up to the write, and idempotent in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.attempts.models import Sample
from app.engine import durable
from app.engine.rows import insert_new

LIVE_FIELDS_MAX = 8192  # bytes of one line; longer ones are cut to their scalars


def chunks_of(reply: Mapping[str, Any], staging: Path, host: str) -> dict[str, dict[str, Any]]:
    """Return the chunks a poll brought from a host: {"records.jsonl": {from, to, data}}, from the reply or from its file in staging."""
    found = reply.get("chunks")
    if not isinstance(found, dict):
        found = durable.read_json(staging / host / "chunks.json")
    return {name: chunk for name, chunk in found.items() if isinstance(chunk, dict)} if isinstance(found, dict) else {}


def rows_of(chunk: Mapping[str, Any], fetched: int) -> tuple[list[tuple[int, dict[str, Any]]], int]:
    """Return (seq, line) of the whole lines of a chunk and the new offset. A chunk that does not join what was fetched is passed over."""
    start, data = int(chunk.get("from", -1)), str(chunk.get("data") or "")
    if start != fetched or not data.endswith("\n"):
        return [], fetched
    rows = []
    for line in data.splitlines():
        try:
            value = json.loads(line)
            rows.append((int(value["seq"]), _live(value, len(line))))
        except (ValueError, KeyError, TypeError):
            continue  # the evidence file keeps it, and the judge speaks about it
    return rows, int(chunk.get("to", start + len(data.encode())))


def spread(rows: list[tuple[int, dict[str, Any]]], most: int) -> list[tuple[int, dict[str, Any]]]:
    """Return at most so many rows (two or more), evenly spread, with the first and the last: these tell by their numbers how many there were."""
    if len(rows) <= most:
        return rows
    return [rows[n * (len(rows) - 1) // (most - 1)] for n in range(most)]


def storing(attempt_id: str, step_id: str, stream: str, rows: list[tuple[int, dict[str, Any]]]) -> Callable[[Session], None]:
    """Return the write that stores samples; a sequence number that is there already is left alone."""

    def write(s: Session) -> None:
        values = [{"attempt_id": attempt_id, "step_id": step_id, "stream": stream, "seq": seq, "data": data} for seq, data in rows]
        insert_new(s, Sample, values, ("step_id", "stream", "seq"))

    return write


def _live(value: dict[str, Any], size: int) -> dict[str, Any]:
    if size <= LIVE_FIELDS_MAX:
        return value
    return {key: item for key, item in value.items() if not isinstance(item, dict | list)}
