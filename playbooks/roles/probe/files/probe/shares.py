"""Which engine host a prompt belongs to, where several serve one load.

What one host stored another may not have, so a prefix is stored on one host and asked of the same: the n-th prompt of each kind belongs to host
n modulo their number, in every run. So each host has an even share of every tier, and the judge can tell a request that went astray.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Union

from probe.prompts import Shot


class Part(NamedTuple):
    """One engine host of those that share a load: its number, how many they are, and its name where they are several."""

    place: int = 0
    places: int = 1
    name: Optional[str] = None

    @property
    def named(self) -> Dict[str, Any]:
        """Return {host: name} for what is on record of this host, nothing of the only one."""
        return {"host": self.name} if self.places > 1 else {}

    def of(self, count: int) -> int:
        """Return how many of so many prompts are this host's."""
        return len(range(self.place, count, self.places))


class Apart(List[Iterator[Shot]]):
    """The shots of each host by themselves, for a load without an end: a faster host must not make the prompts of a slower one pile up."""


class Shares:
    """The shots of one phase, given out host by host. With one host it is their order and nothing else."""

    def __init__(self, shots: Union[Iterator[Shot], Apart], places: int) -> None:
        self._apart: List[Optional[Iterator[Shot]]] = list(shots) if isinstance(shots, Apart) else []
        self._shots: Optional[Iterator[Shot]] = None if isinstance(shots, Apart) else shots
        self._waiting: List[Deque[Shot]] = [deque() for _ in range(places)]

    def place_of(self, shot: Shot) -> int:
        """Return the number of the host that a shot belongs to."""
        return shot.index % len(self._waiting)

    def take(self, place: int) -> Optional[Shot]:
        """Return the next shot of a host, None when it has had all of its share. What comes before and is another's waits for that one."""
        if self._apart:
            return self._own(place)
        if self._waiting[place]:
            return self._waiting[place].popleft()
        while True:
            shot = self.next()
            if shot is None or self.place_of(shot) == place:
                return shot
            self._waiting[self.place_of(shot)].append(shot)

    def _own(self, place: int) -> Optional[Shot]:
        supply = self._apart[place]
        shot = next(supply, None) if supply is not None else None
        if shot is None:
            self._apart[place] = None
        return shot

    def next(self) -> Optional[Shot]:
        """Return the next shot, whosever it is; None when there is no more."""
        shot = next(self._shots, None) if self._shots is not None else None
        if shot is None:
            self._shots = None
        return shot

    @property
    def empty(self) -> bool:
        """Tell whether every shot was given out."""
        return self._shots is None and not any(self._waiting) and not any(self._apart)
