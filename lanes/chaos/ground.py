"""The ground on which the lane stands: one folder below which all of it lives, and one way down, whatever ends it.

The first Ctrl-C, TERM or HUP interrupts once and no later one does, also where whoever started us ignores INT, as a shell does for what it puts
into the background. The service ends in its own order then. Whatever that leaves (a signal may come while it starts or stops) is told
by the folder: processes that name it are ended, file systems below it unmounted, and it is removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.kit.terminal import interrupt_once, on_end, unheard
from tests.processes import mentions

GONE_S = 15.0  # in which what was killed must be gone


@contextmanager
def ground() -> Iterator[Path]:
    """Give the folder, which is also where temporary files of this process go; at the end nothing of the lane is left.

    Raises KeyboardInterrupt in the block when something ends the lane from outside.
    """
    folder, before = Path(tempfile.mkdtemp(prefix="qg-chaos-")), tempfile.tempdir
    folder.chmod(0o711)  # PostgreSQL's server is another user, and its folder lies below
    tempfile.tempdir = str(folder)
    try:
        interrupt_once()
        yield folder
    finally:
        on_end(unheard)
        tempfile.tempdir = before
        clear(folder)


def clear(folder: Path) -> list[str]:
    """End every process that names the folder, unmount what lies below it and remove it. Return in words what could not be."""
    deadline = time.monotonic() + GONE_S
    while (pids := mentions(folder)) and time.monotonic() < deadline:  # again: one that was starting may have started another
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for place in reversed(mounts(folder)):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
    left = [f"process {pid}" for pid in pids] + [f"mount {place}" for place in mounts(folder)]
    if not left:
        shutil.rmtree(folder, ignore_errors=True)
    return left


def mounts(folder: Path) -> list[Path]:
    """Return where file systems are mounted below a folder, in the order of mounting."""
    places = [Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for place in places if place.is_relative_to(folder)]
