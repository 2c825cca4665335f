"""Whether the holder of a lease is dead: told by a lock that the kernel lets go of with its process, and by nothing that is merely old.

    STATE/holders/<holder>    held (flock) by a process that moves attempts, as long as it lives; a lease names it before the colon

A lease that nobody renews any more waits for its end, since whoever is silent may be slow only. A cancel has no time for that: where its holder was a
process of this node and is dead for certain, the lease is let go of at once. Whoever cannot be asked (another machine, a file that is not there)
counts as living. What a dead holder had just handed over to be started is found by the run's own lock (see runs.clean_all).
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import socket
from pathlib import Path

from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from app.attempts.models import Attempt
from app.engine.claim import canceled, movable
from app.kit.db import new_id, read_session, write_session
from app.settings import settings

log = logging.getLogger("quadgate.engine")
_OURS: dict[tuple[int, Path], tuple[str, int]] = {}  # by process and folder: our name, and the descriptor that holds the lock


def folder() -> Path:
    """Return where the holders of this state directory are listed."""
    return settings().state_dir / "holders"


def owner() -> str:
    """Return a name that no other claim has, not even one of the same process: two that overlap must never take each other for themselves."""
    return f"{_holder()}:{new_id()}"


def dead(owner: str) -> bool:
    """Tell whether the process that a lease names was one of this state directory and is gone for certain."""
    name = owner.partition(":")[0]
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name)) and _free(folder() / name)


def let_go() -> list[str]:
    """Let go of the leases that keep canceled attempts of this node waiting for a dead holder. Returns the attempts."""
    held = select(Attempt.id, Attempt.lease_owner).where(
        canceled(), movable(), Attempt.node == settings().node, Attempt.lease_until.is_not(None), Attempt.lease_owner.is_not(None)
    )
    with read_session() as s:
        gone = [(row.id, str(row.lease_owner)) for row in s.execute(held) if dead(str(row.lease_owner))]
    freed = []
    for attempt_id, name in gone:
        with write_session() as s:
            change = update(Attempt).where(Attempt.id == attempt_id, Attempt.lease_owner == name).values(lease_owner=None, lease_until=None)
            freed += list(s.scalars(change.returning(Attempt.id).execution_options(synchronize_session=False)))
        log.warning("attempt %s: the process that had its lease is dead (%s); its cancel goes on", attempt_id, name)
    return freed


def clear() -> int:
    """Remove the files of dead holders that no lease names any more. Returns how many there were."""
    found = {path.name: path for path in folder().glob("*") if _free(path)}
    if not found:
        return 0
    try:
        with read_session() as s:
            named = {str(name).partition(":")[0] for name in s.scalars(select(Attempt.lease_owner).where(Attempt.lease_owner.is_not(None)))}
    except OperationalError:
        return 0
    for name in found.keys() - named:
        found[name].unlink(missing_ok=True)
    return len(found.keys() - named)


def _holder() -> str:
    """Return this process's name among the holders, its file made and locked at the first time. Without a file nobody takes it for dead."""
    at = (os.getpid(), folder())
    if at not in _OURS:
        host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname()).strip("-")[:40] or "host"
        name, fd = f"{host}.{os.getpid()}.{secrets.token_hex(6)}", -1
        try:
            folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(folder() / name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            log.warning("%s cannot be listed among the holders (%s): should it die, a cancel waits for its lease", name, error)
        _OURS[at] = name, fd
    return _OURS[at][0]


def _free(path: Path) -> bool:
    """Tell whether the file is there and nobody holds its lock."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
