"""The open loop: requests start when their time has come, whether or not earlier ones have ended.

What it shows and a closed loop hides is waiting. So nothing is skipped and no clock starts late: `scheduled_ns` is the moment of the
schedule, `sent_ns` the first byte, and a request that finds all connections taken waits in line and keeps its scheduled moment.
"""

from __future__ import annotations

import hashlib
import math
import select
from collections import deque
from typing import Any, Deque, Dict, Iterator, Optional, Tuple

from probe.clock import mono_ns
from probe.driver import ClosedLoop
from probe.prompts import Shot
from probe.slot import Slot
from probe.ticker import Alarm

LEAD_NS = 20_000_000  # the first request starts this long after the loop, so that it is not late already


class Arrivals:
    """A schedule: {rate_per_s, pattern: "constant"|"poisson"} and a seed give the same moments on every host."""

    def __init__(self, spec: Dict[str, Any], seed: int) -> None:
        self.rate, self.pattern, self.seed = float(spec["rate_per_s"]), str(spec.get("pattern", "constant")), seed

    def offsets(self) -> Iterator[int]:
        """Yield ns from the start: 0, then gaps of 1/rate, or exponential ones of that mean (from SHAKE-256, as the prompts are)."""
        mean, at, n = 1e9 / self.rate, 0.0, 0
        while True:
            yield round(at)
            n += 1
            at = n * mean if self.pattern == "constant" else at - math.log(self._uniform(n)) * mean

    def _uniform(self, n: int) -> float:
        """Return the n-th number of (0, 1]."""
        digest = hashlib.shake_256(("quadgate/arrivals/1|%d|%d" % (self.seed, n)).encode("ascii")).digest(7)
        return (int.from_bytes(digest, "big") % (1 << 53) + 1) / (1 << 53)


class OpenLoop(ClosedLoop):
    """Drives shots by a schedule through at most C connections (the `concurrency` of the closed loop)."""

    def __init__(self, arrivals: Arrivals, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._offsets_ns = arrivals.offsets()
        self._alarm = Alarm()
        self._base_ns = 0
        self._next: Optional[Tuple[int, Shot]] = None
        self._line: Deque[Tuple[int, Shot]] = deque()

    def _begin_load(self) -> None:
        self._epoll.register(self._alarm.fd, select.EPOLLIN)
        self._base_ns = mono_ns() + LEAD_NS
        self._schedule()

    def _schedule(self) -> None:
        """Take the next shot and set the alarm to its moment."""
        shot = self._shares.next()
        if shot is None:
            self._next = None
            return
        self._next = (self._base_ns + next(self._offsets_ns), shot)
        self._alarm.set(self._next[0])

    def _woken(self, fd: int) -> None:
        if fd != self._alarm.fd:
            return
        self._alarm.read()
        while self._next is not None and self._next[0] <= mono_ns() and self._stopping_ns is None:
            self._line.append(self._next)
            self._serve_line()
            self._schedule()

    def _serve_line(self) -> None:
        """Put those who wait on free slots of their hosts. The slot used last comes first: its connection is open and warm."""
        while self._line and self._stopping_ns is None:
            free = [slot for slot in self._slots if slot.account is None]
            places = {slot.target.place for slot in free}
            first = next((n for n, (_, shot) in enumerate(self._line) if self._shares.place_of(shot) in places), None) if places else None
            if first is None:
                return
            scheduled, shot = self._line[first]
            del self._line[first]
            own = [slot for slot in free if slot.target.place == self._shares.place_of(shot)]
            self._put(max(own, key=lambda slot: slot.seen_ns), shot, scheduled, mono_ns())

    def _start(self, slot: Slot) -> None:  # noqa: ARG002 - any free slot serves the line
        """Take note that a slot is free."""
        self._serve_line()

    def _idle(self) -> bool:
        return super()._idle() and (not self._line or self._stopping_ns is not None)

    def _close_all(self) -> None:
        self._alarm.close()
        super()._close_all()
