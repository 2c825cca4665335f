"""What counters say across a reboot of the host: what grew meanwhile, and what grew with nobody looking."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from gates.g4.series import Soak
from gates.readers.boots import engine_of
from gates.rules.estimates import NS

_OF_THE_DRIVE = "nvme_"  # a drive keeps its health log over a reboot; all others are the kernel's or a driver's, and start from 0 with each boot


@dataclass(frozen=True)
class Step:
    """The last value that a counter had in one boot, and the first that it had in the next one in which it was told."""

    boot_id: str  # the later one
    at_ns: int  # of its first sample there
    last: int
    first: int
    kept: bool  # it goes on over a reboot

    @property
    def grown(self) -> int:
        """Return by how much it is known to have grown between the two samples; of one that starts anew, since the boot began."""
        return max(0, self.first - self.last) if self.kept else self.first

    @property
    def went_back(self) -> bool:
        """Return whether one that goes on over a reboot went back: another drive, or a log that was cleared."""
        return self.kept and self.first < self.last


def steps(soak: Soak, name: str) -> tuple[Step, ...]:
    """Return the steps of a counter from boot to boot, but for reboots that a labelled injection brought about."""
    values, mono = soak.telemetry.counters[name], soak.telemetry.mono
    known = (values >= 0) & (mono >= 0)
    seen = [(boot, mask) for boot in soak.line.boots if (mask := known & soak.in_boot(boot.id)).any()]
    gap = int(soak.plan.scaled_seconds(soak.plan.g4.gap_max.base) * NS)
    out = []
    for (before, old), (boot, new) in itertools.pairwise(seen):
        last_ns, first_ns = int(mono[old][-1]), int(mono[new][0])
        if soak.injected(before.id, last_ns, max(last_ns, before.end_ns) + gap) or soak.injected(boot.id, first_ns):
            continue
        there = engine_of(boot.id, soak.place)
        kept = name.startswith(_OF_THE_DRIVE) or (there is not None and there == engine_of(before.id, soak.place))  # another host booted anew
        out.append(Step(boot.id, first_ns, int(values[old][-1]), int(values[new][0]), kept))
    return tuple(out)
