"""Which engine host a prompt belongs to, where several serve one load.

What one host stored another may not have, so a prefix is stored on one host and asked of the same: the n-th prompt of each kind belongs to host
n modulo their number, in every run. So each host has an even share of every tier, and the judge can tell a request that went astray.
"""

from __future__ import annotations

from collections import deque
from typing import Deque, Iterator, List, Optional

from probe.prompts import Shot


class Shares:
    """The shots of one phase, given out host by host. With one host it is their order and nothing else."""

    def __init__(self, shots: Iterator[Shot], places: int) -> None:
        self._shots: Optional[Iterator[Shot]] = shots
        self._waiting: List[Deque[Shot]] = [deque() for _ in range(places)]

    def place_of(self, shot: Shot) -> int:
        """Return the number of the host that a shot belongs to."""
        return shot.index % len(self._waiting)

    def take(self, place: int) -> Optional[Shot]:
        """Return the next shot of a host, None when it has had all of its share. What comes before and is another's waits for that one."""
        if self._waiting[place]:
            return self._waiting[place].popleft()
        while True:
            shot = self.next()
            if shot is None or self.place_of(shot) == place:
                return shot
            self._waiting[self.place_of(shot)].append(shot)

    def next(self) -> Optional[Shot]:
        """Return the next shot, whosever it is; None when there is no more."""
        shot = next(self._shots, None) if self._shots is not None else None
        if shot is None:
            self._shots = None
        return shot

    @property
    def empty(self) -> bool:
        """Tell whether every shot was given out."""
        return self._shots is None and not any(self._waiting)
