"""Run one client to its end and say what it cost: `launch.py RESULT SECONDS COMMAND...`. Standard library only.

The CPU time is user + system of the whole process tree. A client may leave workers behind, so this process adopts orphans
(PR_SET_CHILD_SUBREAPER, man 2 prctl) and waits for all of them; what is alive long after the client has ended is killed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
ORPHANS_S = 10.0


def main(result: str, seconds: float, command: list[str]) -> None:
    """Run the command; write {exit_code, cpu_s, wall_s, timed_out}."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    child = os.posix_spawn(command[0], command, os.environ)
    end, code, timed_out = began + seconds, None, False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == child:
            code, end = os.waitstatus_to_exitcode(status), time.monotonic() + ORPHANS_S
        elif pid == 0:
            if time.monotonic() > end:
                timed_out = timed_out or code is None
                for orphan in _children():
                    os.kill(orphan, signal.SIGKILL)
            time.sleep(0.05)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    row = {"exit_code": code, "cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - began, "timed_out": timed_out}
    Path(result).write_text(json.dumps(row), encoding="ascii")


def _children() -> list[int]:
    """Return the pids of our own children; grandchildren become ours when their parents die."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == os.getpid():
                found.append(int(entry.name))
    return found


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
