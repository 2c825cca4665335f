"""Ports for servers of tests, out of the range from which the kernel takes ports of connections: what is free stays free until it is used.

Two test processes at once take theirs from two ranges.
"""

from __future__ import annotations

import os
import random
import socket

FIRST, EACH = 20_000, 2_000


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 6
    first = FIRST + worker * EACH
    for port in random.sample(range(first, first + EACH), 200):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port was found in 200 tries")
