"""What drives and accelerators told of themselves over the soak. It says something of hardware alone, so it is answered whatever the claims say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gates.g4.declared_parts import PARTS
from gates.g4.drives import drive_checks
from gates.g4.gpu_health import gpu_checks
from gates.g4.part_series import readings
from gates.g4.paths import path_check
from gates.g4.series import Soak
from gates.model import CheckResult
from gates.readers.soak_health import read_health


def part_checks(soak: Soak) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the advisory checks of parts in the order of their declarations; entries of what is not told where the soak brought none of it."""
    health = read_health(soak.bundle, soak.pack.folder, soak.host)
    if health is None:
        yield from (one.not_told(soak.plan) for one in PARTS)
        return
    told = readings(soak, health)
    yield from drive_checks(told)
    yield path_check(told)
    yield from gpu_checks(told)
