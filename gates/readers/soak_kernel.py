"""What the kernels of a soak's hosts wrote while it ran: `kernel.jsonl`, a reading a minute of each host (docs/evidence-format.md).

The lines are read as any other kernel log (gates.readers.kernel_log); here stands which reading brought which, and whether one joins the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gates.bundle import Bundle
from gates.model import Problem
from gates.readers.kernel_log import Told, told_in
from gates.readers.strict import Reader, at, count

FILE = "kernel.jsonl"
_NS = 10**9


@dataclass(frozen=True)
class KernelReading:
    """One reading of one host's log. Times are ns of that host's monotonic clock, or of the driver's where it says so."""

    host: str
    boot: str  # of that host
    at_ns: int
    begins: bool  # what stood there before is not the soak's
    joined: bool  # the last line of the reading before still stood there
    problem: str | None  # why nothing could be read
    left_out: int  # lines without room
    lines: tuple[Told, ...]
    pair: str  # boot of the journal's row: the driver's, or that of both hosts
    shift_ns: int | None  # that host's clock less the driver's; None where it is not told

    def moment(self, line: Told, before: KernelReading | None) -> int:
        """Return when a line was written, never outside the two readings between which it came: the kernel's stamps drift from the clock."""
        low = before.at_ns if before is not None and before.boot == self.boot else 0
        return min(max(int(line.at * _NS), low), self.at_ns)


@dataclass(frozen=True)
class KernelLogs:
    """All readings in the order of the journal, and what is wrong with the file."""

    readings: tuple[KernelReading, ...]
    problems: tuple[Problem, ...]


def read_kernel_logs(bundle: Bundle, folder: str) -> KernelLogs | None:
    """Read the journal of a soak's folder; None where it was not brought or holds no line."""
    reader = Reader(bundle, folder)
    if not bundle.has(reader.path(FILE)):
        return None
    found = []
    for row in reader.journal(FILE):
        one = _reading(row)
        if one is None:
            reader.trouble(
                "malformed",
                FILE,
                f"the reading with seq {row.get('seq')!r} lacks a field or holds one of the wrong type.",
                f"seq 为 {row.get('seq')!r} 的读数缺少字段或字段类型错误。",
            )
        else:
            found.append(one)
    return KernelLogs(tuple(found), tuple(reader.problems)) if found or reader.problems else None


def _reading(row: Mapping[str, Any]) -> KernelReading | None:
    """Return the typed reading, None where it is not whole: its lines are held against their own number and hash."""
    host, boot, moment, lines = row.get("host"), at(row, "read", "boot_id"), count(at(row, "read", "mono_ns")), row.get("lines")
    begins, joined, problem, left_out = row.get("begins"), row.get("joined"), row.get("problem", ""), count(row.get("left_out"))
    if not isinstance(host, str) or not isinstance(boot, str) or moment is None or left_out is None or problem == "":
        return None
    if not isinstance(begins, bool) or not isinstance(joined, bool) or not (problem is None or isinstance(problem, str)):
        return None
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines) or not isinstance(row.get("boot_id"), str):
        return None
    if count(row.get("kept")) != len(lines) or row.get("sha256") != digest(lines):
        return None
    told = tuple(told_in(lines))
    if len(told) != len(lines):
        return None
    shift: int | None = 0
    if row.get("on") is not None:
        there, asked = count(at(row, "on", "mono_ns")), count(at(row, "on", "asked_ns"))
        shift = there - asked if there is not None and asked is not None else None
    return KernelReading(host, boot, moment, begins, joined, problem, left_out, told, row["boot_id"], shift)


def digest(lines: list[str]) -> str:
    """Return the SHA-256 (hex) of lines, each with its line end, in UTF-8: as the probe makes it."""
    return hashlib.sha256("".join(line + "\n" for line in lines).encode("utf-8", "replace")).hexdigest()
