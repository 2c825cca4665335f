"""Continuous batching: one token a step for each running sequence, where a step takes longer the more sequences run.

Deadlines are absolute. A late wake-up emits all that became due, in the order in which it became due, so that lateness never adds up.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import Callable, List, Optional, Tuple

SHORTEST_NAP_S = 0.002  # tokens that become due within one nap are written together


class Sequence:
    """One running request in the decoder: how many tokens it gets, and whom to tell that more are due."""

    def __init__(self, total: int, due: Callable[[int], bool], done: "asyncio.Future[None]") -> None:
        self.total = total
        self.emitted = 0
        self.aborted = False
        self.done = done
        self._due = due
        self._told = 0

    def tell(self) -> None:
        """Hand out what became due; a receiver that is gone (False) ends the sequence."""
        if self.emitted > self._told:
            self._told = self.emitted
            if not self._due(self.emitted):
                self.total, self.aborted = self.emitted, True
        if self.emitted >= self.total and not self.done.done():
            self.done.set_result(None)


class Decoder:
    """All running sequences. `factor` gives the slowness of everything at a time."""

    def __init__(self, base_s: float, per_sequence_s: float, factor: Callable[[float], float]) -> None:
        self._base = base_s
        self._per_sequence = per_sequence_s
        self._factor = factor
        self._heap: List[Tuple[float, int, Sequence]] = []
        self._order = itertools.count()
        self._timer: Optional[asyncio.TimerHandle] = None

    def step_s(self, now: float, running: int) -> float:
        """Return how long one step takes with so many sequences in the batch."""
        return (self._base + self._per_sequence * running) * self._factor(now)

    def join(self, sequence: Sequence, at: float) -> None:
        """Begin with the first token, which the prefill made at the time `at` (monotonic seconds)."""
        sequence.emitted = 1
        sequence.tell()
        if sequence.emitted < sequence.total:
            heapq.heappush(self._heap, (at + self.step_s(at, len(self._heap) + 1), next(self._order), sequence))
            self._arm()

    def _arm(self) -> None:
        if self._heap and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._heap[0][0], loop.time() + SHORTEST_NAP_S), self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        touched = {}
        while self._heap and self._heap[0][0] <= now:
            deadline, order, sequence = self._heap[0]
            sequence.emitted += 1
            touched[order] = sequence
            if sequence.emitted >= sequence.total:
                heapq.heappop(self._heap)
            else:
                heapq.heapreplace(self._heap, (deadline + self.step_s(deadline, len(self._heap)), order, sequence))
        for sequence in touched.values():
            sequence.tell()
        self._arm()
