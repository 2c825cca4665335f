"""Journals: numbered lines appended with one write each, by one thread, outside the hot path.

`seq` is given by the writing thread, so a file has no gap and no repeat whatever thread spoke. A line that could be written only in
part (full disk) is taken back, so the file always ends at a line end as long as the process lives.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from typing import Any, Callable, Dict, Optional, Tuple

from probe import clock
from probe.errors import Ended
from probe.files import dumps, sync_dir
from probe.reboot import mend

SYNC_EVERY_S = 1.0


class Journals:
    """All journals of one job. `put` costs a queue entry; `check` raises when the disk or the quota is used up."""

    def __init__(self, folder: str, names: Tuple[str, ...], quota_bytes: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        # Of a soak that goes on after a reboot: its lines are numbered on, and each boot has the whole quota.
        paths = {name: os.path.join(folder, name) for name in names}
        self.counts: Dict[str, int] = {name: mend(path) if os.path.exists(path) else 0 for name, path in paths.items()}
        self._fds = {name: os.open(path, flags, 0o644) for name, path in paths.items()}
        sync_dir(folder)  # a power cut must not take the names of files whose lines are synced
        self._sizes = {name: os.fstat(fd).st_size for name, fd in self._fds.items()}
        self._left = quota_bytes
        self._dirty: Dict[str, bool] = {}
        self._queue: Any = queue.SimpleQueue()
        self._failure: Optional[Ended] = None
        self._watchers: Dict[str, Callable[[Dict[str, Any]], None]] = {}
        self.boot_id = clock.boot_id()  # that rows are stamped with; of a soak of two hosts it names the boots of both (Job.beside)
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def put(self, name: str, row: Dict[str, Any], stamped: bool = True) -> None:
        """Append a row; `stamped` adds wall_ns, mono_ns and boot_id of now. The writer adds `seq`.

        Raises KeyError for what is no journal of this job.
        """
        if name not in self._fds:
            raise KeyError("%s is no journal of this job" % name)
        if stamped:
            row = dict({"wall_ns": clock.wall_ns(), "mono_ns": clock.mono_ns(), "boot_id": self.boot_id}, **row)
        self._queue.put((name, row))

    def watch(self, name: str, seen: Callable[[Dict[str, Any]], None]) -> None:
        """Show each row of a journal, once it is written, to `seen`: in the writer's thread, outside the hot path. It may put rows itself."""
        self._watchers[name] = seen

    @property
    def left(self) -> int:
        """Return how many bytes of the quota are left."""
        return self._left

    @property
    def used(self) -> int:
        """Return how many bytes all journals hold."""
        return sum(self._sizes.values())

    def check(self) -> None:
        """Raise the named end (quota, disk_full, disk) that the writer met."""
        if self._failure:
            raise self._failure

    @property
    def failed(self) -> bool:
        """Tell whether nothing can be written any more."""
        return self._failure is not None

    def flush(self) -> None:
        """Wait until everything put so far is on the disk."""
        done = threading.Event()
        self._queue.put((None, done))
        while not done.wait(1.0):
            if not self._thread.is_alive():
                return

    def close(self) -> None:
        """Flush and end the thread; later rows are lost."""
        self.flush()
        self._queue.put((None, None))
        self._thread.join(10)

    def _work(self) -> None:
        due = time.monotonic() + SYNC_EVERY_S
        while True:
            try:
                name, row = self._queue.get(timeout=max(0.01, due - time.monotonic()))
            except queue.Empty:
                name, row = "", None
            if name is None:
                self._sync()
                if row is None:
                    return
                row.set()
            elif name and not self._failure:
                self._append_or_fail(name, row)
            if time.monotonic() >= due:
                self._sync()
                due = time.monotonic() + SYNC_EVERY_S

    def _append_or_fail(self, name: str, row: Dict[str, Any]) -> None:
        """Append a row; whatever goes wrong ends the job by name. A writer that died alone would leave a job that measures and records nothing."""
        try:
            self._append(name, row)
        except Exception as error:
            self._failure = Ended("journal", "A line of the journal %s cannot be written: %s: %s." % (name, type(error).__name__, error))

    def _append(self, name: str, row: Dict[str, Any]) -> None:
        line = (dumps(dict({"seq": self.counts[name]}, **row)) + "\n").encode("ascii")
        if len(line) > self._left:
            self._failure = Ended("quota", "The job's journals reached their disk quota at %s; nothing after that is recorded." % name)
            return
        fd = self._fds[name]
        try:
            written = os.write(fd, line)
            if written != len(line):
                os.ftruncate(fd, self._sizes[name])
                raise OSError(errno.ENOSPC, "only %d of %d bytes were taken" % (written, len(line)))
        except OSError as error:
            self._failure = _named(error, name)
            return
        self._sizes[name] += len(line)
        self._left -= len(line)
        self.counts[name] += 1
        self._dirty[name] = True
        if name in self._watchers:
            self._watchers[name](row)

    def _sync(self) -> None:
        for name in list(self._dirty):
            try:
                os.fsync(self._fds[name])
            except OSError as error:
                self._failure = self._failure or _named(error, name)
        self._dirty.clear()


def _named(error: OSError, name: str) -> Ended:
    kind = "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "disk"
    return Ended(kind, "The journal %s cannot be written: %s. Free space on the file system of the job's directory." % (name, error))
