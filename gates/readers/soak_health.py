"""The health of drives and accelerators over a soak: `health.jsonl`, a reading a minute (docs/evidence-format.md).

A host whose parts tell nothing brings none, or an empty one. Figures are whole numbers in the unit of their names; what is not told is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gates.bundle import Bundle
from gates.model import Problem
from gates.readers.strict import Reader, at, count

FILE = "health.jsonl"
KINDS = ("drives", "gpus", "paths")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """One part: what it told at each reading that names it, by the reading's number."""

    name: str
    rows: Mapping[int, Row]

    def series(self, *path: str) -> dict[int, int]:
        """Return {reading: whole number} of a figure, where it is told and is one."""
        found = {n: count(at(row, *path)) for n, row in self.rows.items()}
        return {n: value for n, value in found.items() if value is not None}

    def keys(self, name: str) -> list[str]:
        """Return the keys that any of its rows holds below a name, in order of appearance."""
        return list(dict.fromkeys(key for row in self.rows.values() if isinstance(at(row, name), Mapping) for key in row[name]))


@dataclass(frozen=True)
class Health:
    """All readings in order: when each was taken (boot, ns of its monotonic clock, None where it does not say), and the parts by kind and name."""

    stamps: Sequence[tuple[str, int | None]] = ()
    parts: Mapping[str, Mapping[str, Part]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def boot(self, reading: int) -> str:
        """Return the boot of a reading."""
        return self.stamps[reading][0]


def read_health(bundle: Bundle, folder: str, host: str | None = None) -> Health | None:
    """Read the journal of a soak's folder, of one engine host where `host` names it; None where it was not brought or holds no line of it."""
    reader = Reader(bundle, folder)
    if not bundle.has(reader.path(FILE)):
        return None
    stamps: list[tuple[str, int | None]] = []
    parts: dict[str, dict[str, dict[int, Row]]] = {kind: {} for kind in KINDS}
    rows = (row for row in reader.journal(FILE) if host is None or at(row, "on", "host") == host)
    for n, row in enumerate(rows):
        stamps.append((str(row.get("boot_id")), count(row.get("mono_ns"))))
        for kind in KINDS:
            listed = row.get(kind)
            for name, told in listed.items() if isinstance(listed, Mapping) else ():
                if isinstance(told, Mapping):
                    parts[kind].setdefault(name, {})[n] = told
    if not stamps and not reader.problems:
        return None
    found = {kind: {name: Part(name, rows) for name, rows in named.items()} for kind, named in parts.items()}
    return Health(tuple(stamps), found, tuple(reader.problems))
