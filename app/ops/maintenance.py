"""One lock for what must not meet: a backup copies what retention might take away.

It lies in the evidence store, which all nodes of one database share (ADR 14): a lock of each node's own state directory would let a clean-up on
one node remove what a backup on another is copying.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from app.evidence.store import explained
from app.kit.errors import Refused
from app.kit.i18n import N_
from app.settings import settings


@contextmanager
def alone() -> Iterator[None]:
    """Hold the maintenance lock of all nodes. Raises Refused when a backup or a clean-up has it, QuadgateError where no lock can be had."""
    path = settings().evidence_dir / "maintenance.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise explained(error, path.parent) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(
                "maintenance", N_("A backup or a clean-up of {path} is running. Try again when it has ended."), path=str(path.parent)
            ) from None
        except OSError as error:  # a file system that knows no locks: without one nothing may be taken away
            raise explained(error, path.parent) from error
        yield
    finally:
        os.close(fd)
