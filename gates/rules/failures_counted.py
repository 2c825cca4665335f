"""By how much counters of failures grew in a phase: of the engine, and of each endpoint of the offload, by their own names."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gates.readers.strict import at
from gates.rules.claim import Run


def grown(run: Run, phase: str, tier: int | None, counters: Callable[[Any], dict[str, Decimal]]) -> list[tuple[str, Decimal | None]]:
    """Return (counter, growth) of a phase: of the engine and of each endpoint of the offload. A series that a failure brought begins at 0.

    None is the growth of a counter that went back, or is missing behind the phase.
    """
    pair = run.pack.counter_pair(phase, tier)
    if pair is None:
        return []
    ends = [(at(pair[0], "metrics"), at(pair[1], "metrics"))]
    offload = at(pair[1], "offload")
    ends += [(at(pair[0], "offload", url), after) for url, after in (offload.items() if isinstance(offload, dict) else ())]
    out = []
    for before, after in ends:
        low, high = counters(before), counters(after)
        out += [
            (name, None if (end := high.get(name)) is None or end < low.get(name, 0) else end - low.get(name, 0)) for name in sorted({*low, *high})
        ]
    return out
