"""Heavy work of one worker: judging and printing may fill all of its children but one, so that a look at a target never waits for them.

A slot is a lock on a file that is named after the worker; the kernel lets go of it when a child dies.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from app.settings import settings


@contextmanager
def heavy() -> Iterator[bool]:
    """Hold one of this worker's slots for heavy work. False: all are taken, so leave it to whoever has one."""
    folder = settings().state_dir / "slots"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    worker = f"{socket.gethostname()[:60]}-{os.getppid()}"
    for number in range(max(1, settings().worker_children - 1)):
        fd = os.open(folder / f"{worker}-{number}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            continue
        try:
            yield True
        finally:
            os.close(fd)
        return
    yield False
