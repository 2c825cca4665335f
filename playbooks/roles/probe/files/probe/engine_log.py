"""The engine's log, bounded: its head and its tail stay, what lies between is given back to the disk, and a line in its place says how much.

An engine writes for 72 h into a file that it holds open. The job that supervises it punches a hole into that file, so nothing is renamed under
the engine and no line is lost at the cut; where the file system has no holes, the file is cut and its tail is written behind its head again.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress
from typing import Any, Dict, Optional

from probe.files import read_json

HEAD, TAIL, STEP = 16 << 20, 48 << 20, 16 << 20  # bytes: of the start, of the end, and how much more before anything is done
MOST_BYTES = HEAD + TAIL + 2 * STEP  # with what comes between two looks, a second apart
BLOCK = 1 << 16
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_NO_HOLES = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]


def bound_of(pid_file: Optional[str]) -> Optional[Dict[str, Any]]:
    """Bound the log of the engine that a pid file names; None where there is none, or nothing was to be done."""
    found = read_json(pid_file) if pid_file else None
    path = found.get("log") if isinstance(found, dict) else None
    return bound(str(path)) if path else None


def bound(path: str, head: int = HEAD, tail: int = TAIL, step: int = STEP, holes: bool = True) -> Optional[Dict[str, Any]]:
    """Bound one file that others append to. Return {from, to}, the bytes that were dropped of it, or None. Sizes are whole blocks."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        now = os.fstat(fd)
        held = now.st_blocks * 512 if holes else now.st_size
        if min(held, now.st_size) <= head + tail + step:
            return None
        until = (now.st_size - tail) // BLOCK * BLOCK
        line = ("\n[Quadgate: of this log bytes %d to %d were dropped, so that it fits its disk]\n" % (head, until)).encode("ascii")
        if holes and _punched(fd, head, until):
            os.pwrite(fd, line, head)
        else:
            _rewritten(path, fd, head, until, line)
        return {"from": head, "to": until}
    finally:
        os.close(fd)


def _punched(fd: int, begin: int, end: int) -> bool:
    if _libc.fallocate(fd, _PUNCH_HOLE | _KEEP_SIZE, begin, end - begin) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_HOLES:
        return False
    raise OSError(number, os.strerror(number))


def _rewritten(path: str, fd: int, head: int, until: int, line: bytes) -> None:
    """Cut behind the head, then append the line and the tail; the engine's own descriptor appends too, so it goes on behind them."""
    kept = os.pread(fd, os.fstat(fd).st_size - until, until)
    os.ftruncate(fd, head)
    again = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        view = memoryview(line + kept)
        while view:
            view = view[os.write(again, view) :]
    finally:
        os.close(again)


def compact(path: str) -> None:
    """Rewrite the log of an engine that does not run, so that a hole does not grow with every start. What cannot be rewritten is left as it is."""
    with suppress(OSError):
        bound(path, holes=False)
