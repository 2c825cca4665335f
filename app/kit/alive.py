"""Signs of life. A file that is touched whenever work was done: a health check reads its age without starting a program of ours.

Whoever decides by signs waits for the next by the monotonic clock: the age of the last one jumps with the wall clock.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from app.settings import settings


def touch() -> None:
    """Touch the file of the settings, if there is one. A full disk is told elsewhere."""
    if settings().alive_file:
        with suppress(OSError):
            Path(settings().alive_file).touch(mode=0o600)


def touched(path: Path) -> int | None:
    """Return when a file was last touched, as a value to compare with the one before; None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


class Silence:
    """For how long a sign has not changed, by the monotonic clock."""

    def __init__(self) -> None:
        self._last: object = self  # which no sign is
        self._since = 0.0

    def seconds(self, sign: object) -> float:
        """Look at the sign, and return the seconds since it was first seen as it is."""
        if sign != self._last:
            self._last, self._since = sign, time.monotonic()
        return time.monotonic() - self._since
