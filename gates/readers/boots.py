"""The boot ids of a soak. Of one host they are the kernel's own; of two hosts DRIVER+ENGINE, a stretch that a reboot of either host ends.

The driver stamps what it records with both (docs/evidence-format.md), since nothing within a stretch may be held against the clock, the counters
or the processes of another boot of either.
"""

from __future__ import annotations

_AND = "+"


def driver_of(boot_id: str) -> str:
    """Return the boot of the host that drives: the whole id where it names one boot."""
    return boot_id.partition(_AND)[0]


def engine_of(boot_id: str) -> str | None:
    """Return the boot of the engine's host, None where the id names one boot."""
    return boot_id.partition(_AND)[2] or None
