"""Clearing run directories: what a run fetched lies in the evidence store once its step is done, and its events in the database.

staging/ and what was unpacked of it go as soon as nothing of it is needed any more; the rest of the directory when its attempt ended long ago.
`used`, by which the engine counts runs, stays as long as the attempt can go on. What other things are taken away by policy stands in retention.py;
the janitor's round, every ten minutes on each node, asks for that too.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Step
from app.engine import holders
from app.kit.db import database_now, read_session
from app.ops import retention
from app.settings import settings
from gates.transitions import RunStatus

EVERY_S = 600.0
FETCHED = ("staging", "unpacked")
OVER = (str(RunStatus.FINISHED), str(RunStatus.CANCELED))


def sweep_when_due() -> int:
    """Sweep this node's run directories when the last sweep is ten minutes old, and see to retention. Returns the bytes that were freed."""
    mark = settings().runs_dir / ".swept"
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # a node that ran nothing yet sees to retention too
    if mark.exists() and time.time() - mark.stat().st_mtime < EVERY_S:
        return 0
    mark.touch(mode=0o600)
    freed = sweep()
    holders.clear()
    retention.apply_when_due()
    return freed


def sweep() -> int:
    """Clear what is not needed any more. Returns the bytes that were freed."""
    freed = 0
    with read_session() as s:
        for folder in sorted(path for path in settings().runs_dir.iterdir() if path.is_dir()):
            attempt = s.get(Attempt, folder.name)
            if attempt is not None:  # of an attempt that the database does not know nothing can be said
                freed += _clear(s, attempt, folder)
    return freed


def _clear(s: Session, attempt: Attempt, folder: Path) -> int:
    if attempt.status in OVER and attempt.finished_at is not None:
        age = (database_now(s) - attempt.finished_at).total_seconds()
        if settings().keep_runs_days and age > settings().keep_runs_days * 86400:
            return _remove(folder)
    runs = [run for run in folder.iterdir() if any((run / name).is_dir() for name in FETCHED)]
    if not runs:
        return 0
    steps = {step.key: step for step in s.scalars(select(Step).where(Step.attempt_id == attempt.id))}
    return sum(_remove(run / name) for run in runs if _read(run, attempt, steps) for name in FETCHED)


def _read(run: Path, attempt: Attempt, steps: dict[str, Step]) -> bool:
    """Tell whether all of a run's files were dealt with: its result was used, and its step is over or is at another run."""
    if not (run / "used").exists():
        return False
    keys = [key for key in steps if run.name.startswith(f"{key}-")]
    if not keys:
        return False
    step = steps[max(keys, key=len)]
    present = f"{step.key}-{(step.result or {}).get('run')}"
    if step.status in ("done", "canceled") or attempt.status in OVER:
        return True
    return step.status in ("running", "polling", "collecting") and run.name != present  # a failed step's files are for whoever looks into it


def _remove(path: Path) -> int:
    """Remove a folder and return how many bytes it held; links in it are removed, not followed."""
    size = sum((Path(root) / name).lstat().st_size for root, _, names in os.walk(path) for name in names)
    shutil.rmtree(path, ignore_errors=True)
    return size
