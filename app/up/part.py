"""One supervised process, in a session of its own, so that a Ctrl-C in the terminal reaches the supervisor only."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from app.engine import marker

BACK_OFF_FIRST_S, BACK_OFF_MAX_S, STEADY_S = 0.5, 30.0, 60.0


class Part:
    """A program that is started again when it ends, ever more slowly when it ends at once."""

    def __init__(self, name: str, argv: list[str], *, environment: Mapping[str, str], cwd: Path, log: Path) -> None:
        self.name = name
        self._argv, self._environment, self._cwd, self._log = argv, environment, cwd, log
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._quick_ends = 0
        self._again_at: float | None = None
        self.restarts = 0

    @property
    def pid(self) -> int | None:
        """Return the process id while it lives."""
        return self._process.pid if self.alive() and self._process else None

    def alive(self) -> bool:
        """Tell whether the process lives; reaps it when it does not."""
        return self._process is not None and self._process.poll() is None

    def lived_s(self) -> float:
        """Return for how long the process has lived."""
        return time.monotonic() - self._started

    def start(self) -> None:
        """Start the process with its output appended to its log."""
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, env=dict(self._environment), cwd=self._cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._started, self._again_at = time.monotonic(), None

    def look_after(self) -> bool:
        """Start the process again when it has ended and its pause is over. Returns whether it was started."""
        if self.alive():
            return False
        now = time.monotonic()
        if self._again_at is None:
            self._quick_ends = 0 if self.lived_s() > STEADY_S else self._quick_ends + 1
            self._again_at = now + min(BACK_OFF_MAX_S, BACK_OFF_FIRST_S * 2 ** (self._quick_ends - 1 if self._quick_ends else 0))
        if now < self._again_at:
            return False
        self.start()
        self.restarts += 1
        return True

    def stop(self, patience_s: float) -> None:
        """Ask the process to end, and kill it with its children when it does not in time."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        family = [*descendants(process.pid), process.pid]
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            kill(family)
            process.wait(10)

    def kill_family(self) -> list[int]:
        """SIGKILL the process and its children at once, as a crash would. Returns their ids."""
        if not self.alive() or self._process is None:
            return []
        family = [self._process.pid, *descendants(self._process.pid)]
        kill(family)
        self._process.wait(10)
        return family

    def tail(self, lines: int = 15) -> str:
        """Return the last lines of its log."""
        try:
            return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return ""


def descendants(pid: int) -> list[int]:
    """Return the ids of all children and their children."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := marker.parent_of(int(entry.name))) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def kill(pids: list[int]) -> None:
    """SIGKILL processes that may be gone already."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
