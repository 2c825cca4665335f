"""Time as the model counts it: a resource that serves one after the other, and the variation of a service time."""

from __future__ import annotations

import struct


class Serial:
    """A resource that serves one after the other, in virtual time: who comes while it is busy waits.

    Nothing sleeps here. A closed loop that keeps it busy sees exactly its rate, however late the sleeps of the process wake up.
    """

    def __init__(self) -> None:
        self.free = 0.0

    def reserve(self, ready: float, seconds: float) -> float:
        """Take the resource for `seconds` from `ready` on, or from when it is free; return the time of the end."""
        self.free = max(ready, self.free) + seconds
        return self.free


def variation(key: bytes, spread: float) -> float:
    """Return the factor on a service time that belongs to a request: mean 1, standard deviation `spread`, the same at each call.

    Sum of three uniform numbers from the bytes of the key (Irwin-Hall, variance 1/4), so it stays within 1 +- 3 x spread.
    """
    if spread <= 0:
        return 1.0
    a, b, c = struct.unpack_from("<III", key.ljust(12, b"\0"))
    return 1.0 + spread * 2.0 * (float(a + b + c) / 4294967296.0 - 1.5)
