"""One lock for what must not meet: a backup copies what retention might take away."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from app.kit.errors import Refused
from app.kit.i18n import N_
from app.settings import settings


@contextmanager
def alone() -> Iterator[None]:
    """Hold the maintenance lock of the state directory. Raises Refused when a backup or a clean-up has it."""
    path = settings().state_dir / "maintenance.lock"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                "maintenance", N_("A backup or a clean-up of {path} is running. Try again when it has ended."), path=str(path.parent)
            ) from None
        yield
    finally:
        os.close(fd)
