"""What is different from production in the processes of the lane: intervals are short, the controller's clock can be stepped, and messages
can be delivered twice and out of order. The faults are switched by files in STATE/chaos/, so whoever injects is another process.
"""

from __future__ import annotations

import os
import random
from collections import deque
from datetime import timedelta
from pathlib import Path
from typing import Any

SHORT = {
    "WATCH_S": 0.5,
    "POLL_WATCH_S": 1.0,
    "POLL_LINES_MAX": 10**6,  # every line of a journal is held against the target's own
    "POLLS_KEPT": 10**6,  # their files are what the stored events are held against (checks.py)
    "BUSY_S": 1.0,
    "PUSH_BACK_S": 2.0,
    "HINT_AGAIN_S": 3.0,
    "HINT_LOST_S": 3.0,
    "LOST_CONTACT_FIRST_S": 0.7,
    "LOST_CONTACT_MAX_S": 3.0,
    "SOAK_POLL_MIN_S": 1.5,
    "SOAK_POLL_MAX_S": 2.0,
    "RUN_AGAIN_MIN_S": 1.0,
}
FOLDER = Path(os.environ.get("QUADGATE_STATE_DIR", os.environ.get("QUADGATE_SUPERVISED", "."))) / "chaos"


def shorten() -> None:
    """Set the engine's intervals; before anything else of it is imported."""
    from app.engine import expected, policy

    for name, value in SHORT.items():
        setattr(policy, name, value)
    expected.of_history = lambda *_: None  # the phases of a replayed run tell the time of its script, and not how long the replay takes


def bend_clock() -> None:
    """Add the offset of the file `clock` (seconds) to every clock of the controller: its own, beat's, and the database's on the same machine."""
    from celery.schedules import BaseSchedule

    from app.kit import clock, db

    now, database_now = clock.now, db.database_now
    scheduled = BaseSchedule.now
    BaseSchedule.now = lambda schedule: scheduled(schedule) + offset()
    clock.now = lambda: now() + offset()
    db.database_now = lambda session: database_now(session) + offset()


def offset() -> timedelta:
    """Return by how much the controller's clock is wrong at present."""
    try:
        return timedelta(seconds=float((FOLDER / "clock").read_text()))
    except (OSError, ValueError):
        return timedelta()


def set_clock(flag: Path, seconds: float) -> None:
    """Let the controller's clock be wrong by so many seconds from now on; nobody reads half of it."""
    draft = flag.with_name(".clock")
    draft.write_text(str(seconds))
    draft.rename(flag)


def repeat_messages() -> None:
    """While the file `twice` exists, deliver every message twice and an older one after it, whichever process sends it."""
    from app.engine import hints

    send, older = hints.send, deque[tuple[Any, ...]](maxlen=20)

    def sending(broker_url: str, task: str, args: list[Any], *, queue: str, expires_s: float | None = None) -> None:
        send(broker_url, task, args, queue=queue, expires_s=expires_s)
        older.append((task, args, queue))
        if (FOLDER / "twice").exists():
            stale = random.choice(older)
            for again in ((task, args, queue), stale):
                send(broker_url, again[0], again[1], queue=again[2], expires_s=expires_s)

    hints.send = sending
