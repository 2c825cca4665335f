"""The boot ids of a soak. Of one host they are the kernel's own; of several DRIVER+ENGINE+..., a stretch that a reboot of any host ends.

The driver stamps what it records with all of them (docs/evidence-format.md), since nothing within a stretch may be held against the clock, the
counters or the processes of another boot of any. The engine hosts stand in the order in which the job was given them.
"""

from __future__ import annotations

import hashlib

_AND = "+"


def driver_of(boot_id: str) -> str:
    """Return the boot of the host that drives: the whole id where it names one boot."""
    return boot_id.partition(_AND)[0]


def engines_of(boot_id: str) -> tuple[str, ...]:
    """Return the boots of the engine hosts, in the job's order; none where the id names one boot."""
    rest = boot_id.partition(_AND)[2]
    return tuple(rest.split(_AND)) if rest else ()


def engine_of(boot_id: str, place: int = 0) -> str | None:
    """Return the boot of one engine host by its place, None where the id names no such boot."""
    found = engines_of(boot_id)
    return found[place] if place < len(found) else None


def name_of(boot_id: str) -> str:
    """Return the boot id as events name it: whole, but of several engine hosts with a digest for their boots, since names must stay short."""
    rest = engines_of(boot_id)
    return boot_id if len(rest) < 2 else f"{driver_of(boot_id)}{_AND}{hashlib.sha256(_AND.join(rest).encode()).hexdigest()[:16]}"
