"""The live stream of one attempt: server-sent events, resumable, made of short reads of the database.

Events: `log` (new lines of playbooks), `samples` (how many arrived and how fast), `state` (steps and run status), `pulse` (still here),
`bye` (the end of the attempt, of the ten minutes one stream may live, or of the sign-in, which each read asks for). The id names the last
event and sample that were sent, so `Last-Event-ID` goes on without a gap. No session is held between two reads, and no latency of a run is
shown here at all.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from app.accounts.actor import Actor
from app.attempts import usecases as attempts
from app.kit.db import read_session
from app.kit.words import word
from app.reports.format import grouped
from app.web import views
from app.web.lines import lines_of
from app.web.render import text_in

LIFE_SECONDS = 600.0
PULSE_SECONDS = 15.0
REST_SECONDS = 0.8
EVENT_BATCH, SAMPLE_BATCH = 400, 1000
Still = Callable[[Session], Actor | None]  # who stands behind the stream by now; None: nobody any more
_POSITION = re.compile(r"e(\d{1,18})\.s(\d{1,18})")


@dataclass
class Position:
    """The last event and the last sample that were sent."""

    event: int = 0
    sample: int = 0

    def __str__(self) -> str:
        return f"e{self.event}.s{self.sample}"


@dataclass
class Batch:
    """What one read of the database found: new events and samples, and the attempt as it stands."""

    attempt: dict[str, Any]
    events: list[dict[str, Any]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    version: tuple[object, ...] = ()


def position_of(request: Request) -> Position:
    """Return where a stream begins: `Last-Event-ID`, else `?after=`, else the start. Anything malformed is the start."""
    match = _POSITION.fullmatch(request.headers.get("last-event-id", ""))
    if match:
        return Position(int(match[1]), int(match[2]))
    after, sample = request.query_params.get("after", ""), request.query_params.get("sample", "")
    return Position(*(int(text) if text.isdecimal() and len(text) <= 18 else 0 for text in (after, sample)))


def read_batch(attempt_id: str, still: Still, at: Position, before: Batch | None = None) -> Batch | None:
    """Read what is new, in one short session; None when the sign-in has ended or the account was closed since the last read.

    Most reads find that nothing has changed since the one `before`, by a few indexed values, and read no more.
    """
    with read_session(one_moment=True) as s:  # a count of samples from before the newest of them would be shown until the next one came
        if (actor := still(s)) is None:
            return None
        version = attempts.version(s, attempt_id=attempt_id, actor=actor)
        if before is not None and before.version == version and drained(before):
            return Batch(before.attempt, version=version)
        attempt = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)
        events = attempts.events(s, attempt_id=attempt_id, after=at.event, limit=EVENT_BATCH, actor=actor)
        samples = attempts.samples(s, attempt_id=attempt_id, after=at.sample, limit=SAMPLE_BATCH, actor=actor)
    return Batch(attempt, events, samples, version)


def drained(batch: Batch) -> bool:
    """Tell whether a read brought all that there was."""
    return len(batch.events) < EVENT_BATCH and len(batch.samples) < SAMPLE_BATCH


def respond(request: Request, attempt_id: str, still: Still, locale: str) -> StreamingResponse:
    """Return the stream; raises NotFound at once for an attempt that is not for this person's eyes."""
    at = position_of(request)
    first = read_batch(attempt_id, still, at)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_frames(attempt_id, still, locale, at, first), media_type="text/event-stream", headers=headers)


async def _frames(attempt_id: str, still: Still, locale: str, at: Position, batch: Batch | None) -> AsyncIterator[bytes]:
    """Yield frames until the attempt, the sign-in or the stream's life ends, or the reader goes away (which cancels us)."""
    begun = spoke = time.monotonic()
    known = ""
    yield b"retry: 2000\n\n"
    while batch is not None:
        frames, known = _of_batch(batch, at, known, locale)
        for frame in frames:
            yield frame
        whole = drained(batch)
        if whole and batch.attempt["status"] in views.ENDED:
            yield _frame("bye", {"ended": True, "reload": True}, at)
            return
        moment = time.monotonic()
        if moment - begun > LIFE_SECONDS:
            yield _frame("bye", {"ended": False, "reload": False}, at)
            return
        if frames:
            spoke = moment
        elif moment - spoke >= PULSE_SECONDS:
            spoke = moment
            yield b": still here\n" + _frame("pulse", {}, at)
        if whole:
            await asyncio.sleep(REST_SECONDS)
        batch = await run_in_threadpool(read_batch, attempt_id, still, at, batch)
    yield _frame("bye", {"ended": False, "reload": True}, at)


def _of_batch(batch: Batch, at: Position, known: str, locale: str) -> tuple[list[bytes], str]:
    """Return the frames of a batch and the state that the reader knows now; moves the position on."""
    frames = []
    if batch.events:
        at.event = batch.events[-1]["id"]
        frames.append(_frame("log", [{"id": e["id"], "step_id": e["step_id"], "at": e["at"], "lines": lines_of(e)} for e in batch.events], at))
    if batch.samples:
        at.sample = batch.samples[-1]["id"]
        frames.append(_frame("samples", samples_message(batch, locale), at))
    state = state_message(batch.attempt, locale)
    text = json.dumps({**state, "steps": [{**step, "words": ""} for step in state["steps"]]})  # a running clock alone is no news
    if text != known or any(step["status"] not in {"pending", "done", "failed", "canceled", "waiting"} for step in state["steps"]):
        frames.append(_frame("state", state, at))
    return frames, text


def state_message(attempt: dict[str, Any], locale: str) -> dict[str, Any]:
    """Return the run status and the steps, in words."""
    done = sum(step["status"] == "done" for step in attempt["steps"])
    rows = [
        {
            "id": step["id"],
            "key": step["key"],
            "status": step["status"],
            "words": views.step_words(step, locale),
            "problem": text_in(step["problem"], locale),
        }
        for step in attempt["steps"]
    ]
    return {
        "status": attempt["status"],
        "status_words": word("status", attempt["status"], locale),
        "verdict": attempt["verdict"],
        "steps": rows,
        "steps_done": done,
        "steps_total": len(rows),
        "mark": views.mark(attempt),
    }


def samples_message(batch: Batch, locale: str) -> dict[str, Any]:
    """Return how many samples arrived, how fast by the clock of the journal itself, and in which phase ("" where no request arrived)."""
    rate = arrival_rate(batch.samples)
    return {
        "count": batch.attempt["samples"],
        "count_text": grouped(batch.attempt["samples"]),
        "rate": rate,
        "rate_text": "–" if rate is None else grouped(Decimal(str(rate)), digits=1),
        "phase": phase_words(next((sample for sample in reversed(batch.samples) if is_record(sample)), None), locale),
    }


def is_record(sample: dict[str, Any]) -> bool:
    """Tell whether a sample is a request's: telemetry, which comes along, knows no phase."""
    return str(sample["stream"]).startswith("records")


def phase_words(record: dict[str, Any] | None, locale: str) -> str:
    """Return in which phase the newest request was made, and at which concurrency; "" for none."""
    data = record["data"] if record else {}
    phase = word("phase", data["phase"], locale) if data.get("phase") else ""
    return " · ".join(part for part in (phase, f"c = {data['tier']}" if data.get("tier") else "") if part)


def arrival_rate(samples: list[dict[str, Any]]) -> float | None:
    """Return requests a second over a batch, by their numbers and the target's monotonic clock; None where that cannot be said."""
    known = [row for row in samples if is_record(row) and isinstance(row["data"].get("mono_ns"), int)]
    known = [row for row in known if row["step_id"] == known[-1]["step_id"]]
    if not known:
        return None
    passed: int = known[-1]["data"]["mono_ns"] - known[0]["data"]["mono_ns"]
    requests: int = known[-1]["seq"] - known[0]["seq"]
    return requests / (passed / 1e9) if passed > 0 and requests > 0 else None


def _frame(event: str, data: Any, at: Position) -> bytes:
    """Return one server-sent event; JSON has no raw line ends, so one `data` line is enough."""
    return f"id: {at}\nevent: {event}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
