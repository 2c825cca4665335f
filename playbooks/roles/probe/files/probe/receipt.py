"""When bytes arrived: the kernel's own stamp of the segment, turned into CLOCK_MONOTONIC; the loop's clock where there is none.

A loop that serves C connections reads them one after the other, on a processor that others use too. The kernel stamps a segment when it
arrives (SO_TIMESTAMPNS, man 7 socket), so a busy loop no longer delays what it measures. The stamp is of CLOCK_REALTIME; the distance to
CLOCK_MONOTONIC changes only when the wall clock is stepped (adjtime slews both), so it is read closely, kept, and read again at every
tick. A read that takes several segments at once carries the stamp of the last: never earlier than the text it brought.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Dict, List, Tuple

from probe.clock import mono_ns, wall_ns
from probe.histogram import Histogram

SO_TIMESTAMPNS = 35  # <asm-generic/socket.h>; Python has no name for it
ANCILLARY = 64  # room for one control message of two longs
CLOSE_NS = 2_000  # a distance between clocks read within this time is good to a microsecond
STEP_NS = 50_000  # a change beyond this is a step of the wall clock, not the uncertainty of reading
_TIMESPEC = struct.Struct("@qq") if struct.calcsize("@l") == 8 else struct.Struct("@ll")


class Receipts:
    """Turns what `recvmsg` gave into moments of CLOCK_MONOTONIC in ns, and keeps the account of it."""

    def __init__(self) -> None:
        self.kernel = self.loop = self.steps = 0
        self.delays = Histogram()  # how much later than the kernel's stamp the loop read it
        self._offset, self._width = _distance()

    def prepare(self, sock: socket.socket) -> None:
        """Ask the kernel for stamps on this connection; a kernel that has none leaves the loop's clock."""
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)

    def refresh(self) -> None:
        """Read the distance of the clocks again: a closer reading is kept, a step of the wall clock is followed and counted."""
        offset, width = _distance()
        if abs(offset - self._offset) > STEP_NS + width + self._width:
            self.steps += 1
            self._offset, self._width = offset, width
        elif width < self._width:
            self._offset, self._width = offset, width

    def of(self, ancillary: List[Tuple[int, int, bytes]], now_ns: int, not_before_ns: int) -> int:
        """Return when the bytes arrived. A stamp outside [not_before, now] cannot be true and is not used."""
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(data) >= _TIMESPEC.size:
                seconds, rest = _TIMESPEC.unpack_from(data)
                at = seconds * 1_000_000_000 + rest + self._offset
                if not_before_ns <= at <= now_ns:
                    self.kernel += 1
                    self.delays.add(now_ns - at)
                    return int(at)
        self.loop += 1
        return now_ns

    def merge(self, other: Receipts) -> None:
        """Add the account of another loop."""
        self.kernel, self.loop, self.steps = self.kernel + other.kernel, self.loop + other.loop, self.steps + other.steps
        self.delays.merge(other.delays)

    def facts(self) -> Dict[str, int]:
        """Return {kernel, loop, clock_steps, read_delay_p50_ns, read_delay_p99_ns, read_delay_max_ns}: reads by whose stamp, and the loop's delay."""
        row = {"kernel": self.kernel, "loop": self.loop, "clock_steps": self.steps}
        row.update(read_delay_p50_ns=self.delays.percentile(0.5), read_delay_p99_ns=self.delays.percentile(0.99), read_delay_max_ns=self.delays.max)
        return row


def _distance() -> Tuple[int, int]:
    """Return (monotonic minus wall clock in ns, the width of the reading in ns): the closest of a few readings."""
    best = (0, 1 << 62)
    for _ in range(10):
        before = mono_ns()
        wall = wall_ns()
        after = mono_ns()
        if after - before < best[1]:
            best = ((before + after) // 2 - wall, after - before)
            if best[1] <= CLOSE_NS:
                break
    return best
