"""What a run of the lane must have met to show anything, and within what time."""

from __future__ import annotations

import os

from lanes.chaos import control
from lanes.chaos.checks import patience
from lanes.chaos.table import SEVERAL, Table
from lanes.chaos.target_faults import CUTS
from lanes.chaos.wire import KILLED

INJECTIONS = 200
WHOLE_S = 900.0  # of the whole lane with its control, times patience()
ALMOST_ONE = ("SIGKILL probe", "target reboot", "SIGKILL after storing, before registering")  # a job at work; a pack that came home
AT_ONE = (*CUTS.values(), *KILLED.values(), *ALMOST_ONE)  # faults that strike at one boundary, or nearly so


def short_of(table: Table, other: Table | None, whole_s: float, *, long: bool) -> list[str]:
    """Return in sentences what a run lacks, so that it shows nothing. `whole_s`: what it took with its control; `long`: it had no end of its own."""
    missing = [fault for fault, count in table.injected.items() if not count and fault not in table.not_run]
    missing += [f"cancel at {where}" for where in table.unmet()]
    missing += [f"{SEVERAL} different faults at {step}" for step in table.few()]
    missing += [f"{fault} at {SEVERAL} boundaries" for fault in table.narrow() if fault not in AT_ONE]
    missing += [] if table.cancels.alone else ["a cancel that nothing else struck"]
    missing += [] if table.reader_breaks else ["a reader of an event stream whose connection broke"]
    missing += [] if table.walked else ["an engagement that went through the four gates under faults"]
    missing += [] if table.resumed else ["a soak that went on after its target was rebooted"]
    found = []
    if other is not None and not control.shows(other):
        found.append("The control lost and doubled nothing under any injected fault: this lane cannot see what it is for.")
    if not long and (missing or table.injected.total() < INJECTIONS):
        found.append(f"Not enough was injected: {table.injected.total()} of {INJECTIONS}; never: {', '.join(missing) or '-'}")
    if not long and whole_s > (most := WHOLE_S * patience()):
        found.append(f"It took {whole_s:.0f} s, and {most:.0f} s are the most.")
    if os.environ.get("CI") == "true" and table.not_run:
        found.append(f"NOT RUN, which is a failure under CI=true: {', '.join(sorted(table.not_run))}")
    return found
