"""What an earlier supervisor, or a lab on this machine, left running; told apart from everything else by pid and start time, marker, or path."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from app.engine import durable, marker

SUPERVISED = "QUADGATE_SUPERVISED"  # = the state directory, in the environment of all that the supervisor starts


def write_down(path: Path, pids: dict[str, int]) -> None:
    """Write down which processes are ours: a pid alone may be somebody else's by tomorrow, with its start time it names one process."""
    durable.write_json(path, {name: {"pid": pid, "ticks": marker.start_ticks(pid)} for name, pid in pids.items()})


def end_recorded(path: Path) -> list[int]:
    """End the processes of an earlier supervisor that still live. Returns their ids."""
    known = durable.read_json(path) or {}
    pids = [
        int(entry["pid"]) for entry in known.values() if entry.get("ticks") is not None and marker.start_ticks(int(entry["pid"])) == entry["ticks"]
    ]
    end(pids)
    path.unlink(missing_ok=True)
    return pids


def local_lab(state_dir: Path) -> list[int]:
    """Return the processes of local targets: programs that run from, on or in `<state_dir>/lab/`, without a terminal of a person.

    An engine may run from elsewhere and overwrite its words and its environment with a title; its working directory stays below the lab.
    """
    root = os.fsencode(state_dir / "lab") + b"/"
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = [*(entry / "cmdline").read_bytes().split(b"\0"), os.fsencode((entry / "cwd").readlink())]
        except OSError:
            continue
        pid = int(entry.name)
        if any(word.startswith(root) for word in words) and marker.state(pid) not in ("Z", "X", "") and not marker.has_terminal(pid):
            found.append(pid)
    return found


def end(pids: list[int], patience_s: float = 5.0) -> None:
    """Ask processes to end, then kill those that did not."""
    ticks = {pid: marker.start_ticks(pid) for pid in pids}
    for sign in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + patience_s
        for pid in _living(ticks):
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                continue
        while _living(ticks) and time.monotonic() < deadline:
            time.sleep(0.02)


def _living(ticks: dict[int, int | None]) -> list[int]:
    return [pid for pid, began in ticks.items() if began is not None and marker.start_ticks(pid) == began and marker.state(pid) not in ("Z", "X", "")]
