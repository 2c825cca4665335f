"""Clocks of this host: monotonic for durations, wall for people, the boot id that ties both to one boot."""

from __future__ import annotations

import time

mono_ns = time.monotonic_ns
wall_ns = time.time_ns

_BOOT: list = []


def boot_id() -> str:
    """Return the kernel's random id of this boot (read once), or an empty string where /proc has none."""
    if not _BOOT:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
                _BOOT.append(f.read().strip())
        except OSError:
            _BOOT.append("")
    return _BOOT[0]


def together(*boots: str) -> str:
    """Return the name of what boots have in common, DRIVER+ENGINE+...: the driver's and those of the engine hosts. A reboot of any ends it."""
    return "+".join(boots)


def boot_wall_ns() -> int:
    """Return the wall time of the boot in ns, from /proc/stat (whole seconds); 0 where it is not offered."""
    try:
        with open("/proc/stat", encoding="ascii") as f:
            for line in f:
                if line.startswith("btime "):
                    return int(line.split()[1]) * 1_000_000_000
    except (OSError, ValueError):
        pass
    return 0
