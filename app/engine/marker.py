"""Finding and ending processes by the marker variable they inherited: the only thing a whole tree of sessions has in common."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

VARIABLE = "QUADGATE_ATTEMPT"
BETWEEN = ","  # the attempts whose polls one playbook makes together


def carriers(value: str, variable: str = VARIABLE) -> list[int]:
    """Return the ids of the living processes (no zombies, not this one) whose environment carries variable=value, or value as one of several."""
    name, wanted, between = f"{variable}=".encode(), value.encode(), BETWEEN.encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            carried = [pair.removeprefix(name) for pair in (entry / "environ").read_bytes().split(b"\0") if pair.startswith(name)]
            ours = any(wanted == one or wanted in one.split(between) for one in carried)
            if ours and state(int(entry.name)) not in ("Z", "X", ""):
                found.append(int(entry.name))
        except OSError:
            continue  # gone, or not ours to read
    return found


def state(pid: int) -> str:
    """Return the one-letter state of a process, empty when there is none. A zombie is Z: `kill -0` would call it alive."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def start_ticks(pid: int) -> int | None:
    """Return when a process began, in clock ticks since boot: with the pid it names a process for good."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def parent_of(pid: int) -> int | None:
    """Return the parent of a process."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def has_terminal(pid: int) -> bool:
    """Tell whether a process belongs to somebody's terminal."""
    fields = _stat(pid)
    return bool(fields) and fields[4] != "0"


def end_all(value: str, variable: str = VARIABLE, patience_s: float = 5.0) -> int:
    """SIGKILL every carrier, again and again until none is left. Returns how many there were; raises TimeoutError when some stay."""
    ended: set[int] = set()
    deadline = time.monotonic() + patience_s
    while pids := carriers(value, variable):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {pids} carry {variable}={value} and do not end")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                ended.add(pid)
            except ProcessLookupError:
                pass
        time.sleep(0.01)
    return len(ended)


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
