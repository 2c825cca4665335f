"""The files of the KV directories of an engine host: how many bytes they hold, how that grows under load, and that they are on the medium."""

from __future__ import annotations

import os
import time
from typing import Dict, List, Optional

from probe.files import walk_files

SCAN_SHARE = 20  # the directories are walked at most a twentieth of the time


def size(folders: List[str]) -> Dict[str, int]:
    """Return {files, bytes} of the directories. A file that goes meanwhile does not count."""
    files = total = 0
    for folder in folders:
        for name in walk_files(folder):
            try:
                total += os.path.getsize(name)
                files += 1
            except OSError:
                continue
    return {"files": files, "bytes": total}


def sync(folders: List[str]) -> None:
    """Put the files of the directories on the medium."""
    for name in (name for folder in folders if os.path.isdir(folder) for name in walk_files(folder)):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class Growth:
    """The bytes of the directories over a soak. Between two walks the last figure stands."""

    def __init__(self, folders: List[str]) -> None:
        self._folders = folders
        self._bytes: Optional[int] = None
        self._next = 0.0

    def bytes(self) -> Optional[int]:
        """Return the bytes, walking again where enough time has passed since the last walk; the load goes first."""
        began = time.monotonic()
        if began >= self._next:
            total = 0
            for folder in self._folders:
                for n, name in enumerate(walk_files(folder)):
                    try:
                        total += os.path.getsize(name)
                    except OSError:
                        continue
                    if n % 100 == 99:
                        time.sleep(0)
            self._bytes, self._next = total, time.monotonic() + SCAN_SHARE * (time.monotonic() - began)
        return self._bytes
