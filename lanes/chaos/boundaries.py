"""Named boundaries inside a move: a worker's process is killed, or a person cancels, exactly there and not when somebody outside happens to look.

The lane arms a boundary by a file in STATE/chaos/; the first worker process that comes to it takes the file, writes a line into STATE/chaos/hits
and kills itself. A cancel is armed for one attempt and one state of its step, and is asked for before the engine reads the row.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from lanes.chaos.scaled import FOLDER

BOUNDARIES = {
    "SIGKILL after the claim": "claimed",
    "SIGKILL after a start, before its commit": "spawned",
    "SIGKILL after storing, before registering": "stored",
    "SIGKILL after a commit, before its hint": "committed",
}
CANCELS = (  # kind and status of the step at which a person cancels
    *(("playbook", "pending"), ("playbook", "starting")),
    *(("job", "pending"), ("job", "starting"), ("job", "running"), ("job", "polling"), ("job", "collecting")),
    ("judge", "pending"),
)


@dataclass(frozen=True)
class Hit:
    """Something that happened at a boundary: its slug or `cancel kind/status`, the attempt, the monotonic time."""

    what: str
    attempt: str
    at: float


def arm(folder: Path, slug: str) -> bool:
    """Let the next worker process that comes to a boundary die there. False when that is asked already."""
    flag = folder / f"die-{slug}"
    if flag.exists():
        return False
    flag.touch()
    return True


def arm_cancel(folder: Path, attempt: str, kind: str, status: str) -> None:
    """Let a person cancel an attempt when the engine next takes it up at a step of this kind and status."""
    draft = folder / f".cancel-{attempt}"
    draft.write_text(f"{kind}/{status}")
    draft.rename(folder / f"cancel-{attempt}")


def hits(folder: Path, seen: int) -> list[Hit]:
    """Return what happened since the first `seen` ones."""
    path = folder / "hits"
    lines = path.read_text().splitlines()[seen:] if path.exists() else []
    return [Hit(what, attempt, float(at)) for what, attempt, at in (line.split("\t") for line in lines)]


def _note(what: str, attempt: str) -> None:
    fd = os.open(FOLDER / "hits", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.write(fd, f"{what}\t{attempt}\t{time.monotonic()}\n".encode())
    os.close(fd)


def _die(slug: str, attempt: str) -> None:
    flag = FOLDER / f"die-{slug}"
    try:
        flag.rename(FOLDER / f".{slug}-{os.getpid()}")
    except OSError:
        return
    _note(slug, attempt)
    os.kill(os.getpid(), signal.SIGKILL)


def _cancel(attempt_id: str) -> None:
    """Cancel as a person does, when the attempt is where that was asked for."""
    flag = FOLDER / f"cancel-{attempt_id}"
    try:
        wanted = flag.read_text()
    except OSError:
        return
    from app.accounts.actor import SYSTEM
    from app.attempts import usecases
    from app.attempts.models import Attempt, Step
    from app.kit.db import write_session
    from app.kit.errors import Refused

    with suppress(Refused), write_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        step = s.scalar(select(Step).where(Step.attempt_id == attempt_id, Step.position == attempt.step_index))
        if step is None or f"{step.kind}/{step.status}" != wanted or attempt.status not in ("running", "lost_contact"):
            return
        usecases.request_cancel(s, attempt_id=attempt_id, reason="chaos", actor=SYSTEM)
    with suppress(FileNotFoundError):
        flag.rename(FOLDER / f".canceled-{attempt_id}")
        _note(f"cancel {wanted}", attempt_id)


def watch() -> None:
    """Wrap the engine's own functions in this process; before a worker forks its children."""
    from app.engine import advance, runs
    from app.evidence import store

    claim, load, commit, launch, put_file = advance.claim, advance.load, advance.commit, runs.launch, store.put_file
    about: dict[str, str] = {"attempt": ""}

    def claiming(attempt_id: str, *args: Any, **more: Any) -> Any:
        held = claim(attempt_id, *args, **more)
        if held is not None:
            about["attempt"] = attempt_id
            _die("claimed", attempt_id)
        return held

    def loading(attempt_id: str, **more: Any) -> Any:
        _cancel(attempt_id)
        return load(attempt_id, **more)

    def committing(held: Any, ctx: Any, outcome: Any) -> bool:
        written = commit(held, ctx, outcome)
        if written and outcome.due_s == 0:
            _die("committed", held.attempt_id)
        return written

    def launching(boarded: Any) -> None:
        launch(boarded)
        _die("spawned", boarded[0].run.attempt_id)

    def storing(path: Path) -> Any:
        stored = put_file(path)
        _die("stored", about["attempt"])
        return stored

    advance.claim, advance.load, advance.commit, runs.launch, store.put_file = claiming, loading, committing, launching, storing  # type: ignore[assignment]
