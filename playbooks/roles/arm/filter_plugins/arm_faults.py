"""Faults of a simulated target, as an engagement states them, and which of them hit an arm in a gate. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

# Strength 1 of each is clearly more than any agreed tolerance, and less than what would look like another kind of defect.
ENGINE_FAULTS: dict[str, Callable[[float], dict[str, Any]]] = {
    "slow-tier": lambda s: {"tier_slowdown": min(0.95, 0.3 * s)},
    "warm-cache": lambda s: {"read_ahead_share": min(1.0, 0.3 * s)},
    "warm-array-cache": lambda s: {"cache_share": min(1.0, 0.5 * s)},
    "lost-kv": lambda s: {"lost_kv_share": min(1.0, 0.04 * s)},
    "corrupt-kv": lambda s: {"corrupt_kv_share": min(1.0, 0.04 * s)},
    "silent-errors": lambda s: {"error_stream_share": min(0.5, 0.02 * s), "empty_stream_share": min(0.5, 0.02 * s)},
    "drift": lambda s: {"drift_per_s": 0.005 * s},
    "leak": lambda s: {"leak_bytes_per_request": int(196608 * s)},
    "engine-crash": lambda s: {"crash_after_loads": math.ceil(600 / s)},
}
OVER_TIME = ("drift", "leak", "engine-crash")
# What happens beside the engine, whatever engine that is: the client asks one arm for less, or the restart before measuring is left out (arm_job.py).
RIG_FAULTS = ("unequal-work", "skipped-reset")


def faults_of(faults: Mapping[str, Any] | None, arm: str, gate: str) -> dict[str, float]:
    """Return the strengths of the faults that hit this arm in this gate; what is absent or 0 hits nothing.

    A fault is `NAME: STRENGTH` or `NAME: {strength, arms, gates}`. Left out, it hits the candidate: in the soak what shows only over
    time, in the main gate everything else. Names that belong to other simulators are passed over.
    """
    found: dict[str, float] = {}
    for name, value in (faults or {}).items():
        if name not in ENGINE_FAULTS and name not in RIG_FAULTS:
            continue
        given = value if isinstance(value, Mapping) else {"strength": value}
        strength = float(given.get("strength") or 0)
        arms = given.get("arms") or ["candidate"]
        gates = given.get("gates") or (["G4"] if name in OVER_TIME else ["G3"])
        if strength < 0:
            raise ValueError(f"The fault {name} has strength {strength}; 0 means none, and there is nothing below.")
        if strength > 0 and arm in arms and gate in gates:
            found[name] = strength
    return found


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"arm_faults": faults_of}
