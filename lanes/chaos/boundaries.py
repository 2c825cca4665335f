"""Named boundaries inside a move: a worker's process is killed, or a person cancels, exactly there and not when somebody outside happens to look.

The lane arms a boundary by a file in STATE/chaos/; the first worker process that comes to it takes the file, writes a line into STATE/chaos/hits
and kills itself. A cancel is armed for one attempt and one state of its step, and is asked for before the engine reads the row (of a judgement
also just before it is written); what is noted is whether it was accepted, and when the attempt was gone.
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
    *(("playbook", "pending"), ("playbook", "starting"), ("playbook", "running")),  # running: its playbook is under way
    *(("manual", "pending"), ("manual", "waiting")),
    *(("job", "pending"), ("job", "starting"), ("job", "running"), ("job", "polling"), ("job", "collecting")),
    *(("judge", "pending"), ("judge", "deciding")),  # deciding: it is judged, and not yet written
    ("report", "pending"),  # to be refused: a verdict that is reached stays reached
)
UNSEEN = (("playbook", "running"), ("judge", "deciding"))  # of these only the worker itself can tell
STEPS = tuple(f"{kind}/{status}" for kind, status in CANCELS if (kind, status) not in UNSEEN)  # where every kind of fault is counted
REFUSED, GONE, DECIDING, WAITING = "refused", "gone", "judge/deciding", "manual/waiting"


@dataclass(frozen=True)
class Hit:
    """Something that happened at a boundary: its slug, `cancel kind/status`, `refused kind/status` or `gone`; the attempt; the monotonic time."""

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


def armed(folder: Path, attempt: str) -> bool:
    """Tell whether a cancel is still to be asked for."""
    return (folder / f"cancel-{attempt}").exists()


def hits(folder: Path, seen: int) -> list[Hit]:
    """Return what happened since the first `seen` ones."""
    path = folder / "hits"
    lines = path.read_text().splitlines()[seen:] if path.exists() else []
    return [Hit(what, attempt, float(at)) for what, attempt, at in (line.split("\t") for line in lines)]


def _note(what: str, attempt: str, folder: Path = FOLDER) -> None:
    fd = os.open(folder / "hits", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
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


def _wanted(attempt_id: str) -> str:
    try:
        return (FOLDER / f"cancel-{attempt_id}").read_text()
    except OSError:
        return ""


def _cancel(attempt_id: str, *, deciding: bool = False) -> None:
    """Cancel as a person does, when the attempt is where that was asked for. `deciding`: its judgement is about to be written."""
    wanted = _wanted(attempt_id)
    if not wanted or (wanted == DECIDING) != deciding:
        return
    from app.attempts.models import Attempt, Step
    from app.kit.db import read_session

    with read_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        step = s.scalar(select(Step).where(Step.attempt_id == attempt_id, Step.position == attempt.step_index))
    kind, _, at = wanted.partition("/")
    if step is None or step.kind != kind or attempt.status not in ("running", "lost_contact"):
        return
    if deciding or step.status == at or (kind, at, step.status, _runs(attempt_id, step)) == ("playbook", "running", "starting", True):
        ask(FOLDER, attempt_id, wanted)


def _runs(attempt_id: str, step: Any) -> bool:
    from app.engine import runs

    run = (step.result or {}).get("run")
    return bool(run) and runs.look(runs.folder_of(attempt_id, step.key, run)).look is runs.Look.ALIVE


def ask(folder: Path, attempt_id: str, where: str) -> None:
    """Ask for the cancel, and note whether it was accepted: only then it is one."""
    from app.accounts.actor import SYSTEM
    from app.attempts import usecases
    from app.kit.db import write_session
    from app.kit.errors import Refused

    try:
        with write_session() as s:
            usecases.request_cancel(s, attempt_id=attempt_id, reason="chaos", actor=SYSTEM)
        what = "cancel"
    except Refused:
        what = REFUSED
    with suppress(FileNotFoundError):
        (folder / f"cancel-{attempt_id}").rename(folder / f".canceled-{attempt_id}")
    _note(f"{what} {where}", attempt_id, folder)


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
        if outcome.next_step:
            _cancel(held.attempt_id, deciding=True)
        written = commit(held, ctx, outcome)
        if written and outcome.event == "cancel":
            _note(GONE, held.attempt_id)
        if written and outcome.due_s == 0:
            _die("committed", held.attempt_id)
        return written

    def launching(boarded: Any) -> None:
        launch(boarded)
        _die("spawned", boarded[0].run.attempt_id)

    def storing(path: Path, *between: Any) -> Any:
        stored = put_file(path, *between)
        _die("stored", about["attempt"])
        return stored

    advance.claim, advance.load, advance.commit, runs.launch, store.put_file = claiming, loading, committing, launching, storing  # type: ignore[assignment]
