"""The table: fault, times injected, lost, doubled, wrong verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from lanes.chaos.ends import Cancels
from lanes.chaos.findings import DOUBLED, LOST, WRONG

HEAD = ("fault", "injected", "lost", "doubled", "wrong verdicts")
SEVERAL = 2  # faults that each boundary is to meet, and boundaries that each fault is to strike at
COLUMNS = ((LOST, 2), (DOUBLED, 3), (WRONG, 4))


class Table:
    """Counts by fault. What goes wrong with an attempt is counted under every fault that struck while it lived."""

    def __init__(self, faults: Iterable[str], at: Iterable[str] = (), steps: Sequence[str] = ()) -> None:
        self.injected: Counter[str] = Counter(dict.fromkeys(faults, 0))
        self.found: Counter[tuple[str, str]] = Counter()
        self.steps = steps  # the boundaries, as kind/status of the step
        self.struck: Counter[tuple[str, str]] = Counter()  # fault and boundary at which who was struck stood
        self.not_run: dict[str, str] = {}
        self.total: Counter[str] = Counter()
        self.canceled: Counter[str] = Counter(dict.fromkeys(at, 0))  # accepted cancels by kind/status of the step
        self.refused: Counter[str] = Counter()  # of an attempt that has its verdict
        self.cancels = Cancels()
        self.reader_breaks = 0  # connections of a reader of the event stream that broke under it
        self.resumed = 0  # soaks that went on in another boot of their target
        self.walked = 0  # engagements that went through the four gates under faults
        self.knocks = 0  # times that somebody tried to open a gate before its time, and was refused

    def blame(self, faults: Iterable[str], kind: str) -> None:
        """Count one finding."""
        self.total[kind] += 1
        for fault in set(faults) or {"none"}:
            self.found[fault, kind] += 1

    def unmet(self) -> list[str]:
        """Return the kind/status of steps at which no cancel was tried yet."""
        return [where for where in self.canceled if not self.canceled[where] and not self.refused[where]]

    def few(self) -> list[str]:
        """Return the boundaries that too few different faults struck at. A cancel is asked for at each of them anyway."""
        return [step for step in self.steps if sum(bool(self.struck[fault, step]) for fault in self.injected if fault != "cancel") < SEVERAL]

    def narrow(self) -> list[str]:
        """Return the faults that struck more than once, and at too few boundaries."""
        wide = {fault: sum(bool(self.struck[fault, step]) for step in self.steps) for fault in self.injected}
        return [fault for fault, count in self.injected.items() if count > 1 and wide[fault] < SEVERAL]

    @property
    def clean(self) -> bool:
        """Tell whether nothing was lost, doubled or judged wrongly."""
        return not self.total

    def lines(self) -> list[str]:
        """Return the table as it is printed."""
        rows = [HEAD]
        for fault, count in self.injected.items():
            if fault in self.not_run and not count:
                rows.append((fault, "NOT RUN", "-", "-", "-"))
            else:
                rows.append((fault, str(count), *(str(self.found[fault, kind]) for kind, _ in COLUMNS)))
        if any(fault == "none" for fault, _ in self.found):
            rows.append(("none", "", *(str(self.found["none", kind]) for kind, _ in COLUMNS)))
        rows.append(("all", str(self.injected.total()), *(str(self.total[kind]) for kind, _ in COLUMNS)))
        lines = [*_aligned(rows), *(self._by_step() if self.steps else [])]
        if self.canceled:
            lines.append("canceled at: " + ", ".join(f"{where} {count}" for where, count in self.canceled.items()))
        if self.refused:
            lines.append("refused, as a verdict that is reached stays: " + ", ".join(f"{where} {count}" for where, count in self.refused.items()))
        lines += self.cancels.lines()
        if self.reader_breaks:
            lines.append(f"readers of event streams lost their connection {self.reader_breaks} times, and were told each event once")
        if self.resumed:
            lines.append(f"soaks that went on after a reboot of their target, to the right verdict: {self.resumed}")
        if self.walked:
            lines.append(f"engagements from G1 to G4: {self.walked}; a gate was tried before its time {self.knocks} times, and stayed shut")
        return [*lines, *(f"NOT RUN: {fault}: {why}" for fault, why in self.not_run.items() if not self.injected[fault])]

    def _by_step(self) -> list[str]:
        """Return the table of faults by boundaries: kinds of step above their statuses."""
        heads = [("struck at", *(step.partition("/")[part] for step in self.steps)) for part in (0, 2)]
        counts = [(fault, *(str(self.struck[fault, step] or "-") for step in self.steps)) for fault in self.injected]
        return ["", *_aligned([heads[0], ("", *heads[1][1:]), *counts]), ""]


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return ["  ".join(cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows]
