"""Moving bytes to and from a medium past the page cache: a checkpoint written, KV files read."""

from __future__ import annotations

import mmap
import os
import threading
from typing import Any, Callable, Dict, List, Tuple

from probe import clock
from probe.coldness import require_coolable
from probe.errors import ProbeError
from probe.files import sync_dir, walk_files
from probe.preflight import require_room

BLOCK = 16 << 20  # of a checkpoint's writes
NAME = ".quadgate-checkpoint"


def write_checkpoint(folder: str, size: int, check: Callable[[], None]) -> Dict[str, Any]:
    """Write `size` bytes (rounded up to a block) to a new file, fsync file and directory, and remove it. The time ends when all is on the medium.

    The bytes are random, so that no drive or array compresses them. Where the file system takes no direct writes, fsync alone is the proof.
    """
    require_coolable(folder)
    blocks = -(-size // BLOCK)
    require_room(folder, blocks * BLOCK, "The checkpoint")
    path = os.path.join(folder, NAME)
    if os.path.exists(path):  # of a job that died
        os.unlink(path)
    buffer = mmap.mmap(-1, BLOCK)
    buffer.write(os.urandom(BLOCK))
    fd, direct = _open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        started, marks = clock.mono_ns(), []
        for n in range(blocks):
            check()
            buffer[:8] = n.to_bytes(8, "big")  # no two blocks are alike
            done = os.write(fd, buffer)
            if done != BLOCK:
                raise ProbeError("cell", "Only %d of %d bytes of a block were taken by %s." % (done, BLOCK, path))
            marks.append(clock.mono_ns())
        written = clock.mono_ns()
        os.fsync(fd)
        sync_dir(folder)
        ended = clock.mono_ns()
    finally:
        os.close(fd)
        os.unlink(path)
        buffer.close()
    row: Dict[str, Any] = {"started_ns": started, "ended_ns": ended, "bytes": blocks * BLOCK, "cold": True, "direct": direct, "dir": folder}
    row.update(fsync_ns=ended - written, slowest_bytes_per_s=_slowest(started, marks))
    return row


def _slowest(started: int, marks: List[int]) -> int:
    """Return the least bandwidth of any stretch of at least a second (of the whole, where it was shorter): what was sustained."""
    least, begin, count = None, started, 0
    for at in marks:
        count += 1
        if at - begin >= 1_000_000_000:
            rate = count * BLOCK * 1_000_000_000 // (at - begin)
            least, begin, count = (rate if least is None else min(least, rate)), at, 0
    return least if least is not None else len(marks) * BLOCK * 1_000_000_000 // max(1, marks[-1] - started)


def read_tier(folder: str, size: int, threads: int, block: int, check: Callable[[], None]) -> Dict[str, Any]:
    """Read `size` bytes of the files below a folder with so many threads; return {started_ns, ended_ns, bytes, direct, threads, files}.

    The files come in a fixed order. Fewer stored bytes than asked for are told by `bytes`.
    """
    wanted: List[Tuple[str, int]] = []
    left = size
    for path in walk_files(folder):
        take = min(left, os.path.getsize(path))
        if take:
            wanted.append((path, take))
        left -= take
        if left <= 0:
            break
    todo, lock = iter(wanted), threading.Lock()
    moved, buffered, problems = [0] * threads, [False] * threads, []  # type: List[int], List[bool], List[str]

    def work(me: int) -> None:
        buffer = mmap.mmap(-1, block)
        try:
            while not problems:
                check()
                with lock:
                    path, take = next(todo, ("", 0))
                if not take:
                    return
                done, direct = _read(path, take, buffer)
                moved[me] += done
                buffered[me] |= not direct
        except (OSError, ProbeError) as error:
            problems.append(str(error))
        finally:
            buffer.close()

    workers = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(threads)]
    started = clock.mono_ns()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    ended = clock.mono_ns()
    check()
    if problems:
        raise ProbeError("cell", "A KV file could not be read: %s." % problems[0])
    row: Dict[str, Any] = {"started_ns": started, "ended_ns": ended, "bytes": sum(moved), "direct": not any(buffered), "files": len(wanted)}
    return dict(row, threads=threads, block_bytes=block)


def _read(path: str, take: int, buffer: mmap.mmap) -> Tuple[int, bool]:
    """Read the first `take` bytes of a file; direct reads are whole blocks of the device, so a little more is read and not counted."""
    fd, direct = _open(path, os.O_RDONLY)
    try:
        done = 0
        while done < take:
            got = os.preadv(fd, [buffer], done)
            if got <= 0:
                break
            done += got
        return min(done, take), direct
    finally:
        os.close(fd)


def _open(path: str, flags: int) -> Tuple[int, bool]:
    """Open a file past the page cache where its file system can. Return (descriptor, whether it is direct)."""
    try:
        return os.open(path, flags | os.O_DIRECT | os.O_CLOEXEC, 0o600), True
    except OSError:
        return os.open(path, flags & ~os.O_EXCL | os.O_CLOEXEC, 0o600), False
