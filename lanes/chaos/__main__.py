"""`python -m lanes.chaos [--long] [--seed N] [--seconds S] [--write]`: run the lane and its control, print the tables; 0 when nothing was lost."""

from __future__ import annotations

import argparse
import logging
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from lanes.chaos import scaled

scaled.shorten()  # before the engine is imported
scaled.bend_clock()

from lanes.chaos import boundaries, control, page  # noqa: E402
from lanes.chaos.faults import FAULTS  # noqa: E402
from lanes.chaos.lane import ON_POSTGRES, Lane, lacking  # noqa: E402
from lanes.chaos.table import Table  # noqa: E402

INJECTIONS = 200


def main() -> int:
    """Run the short lane, or the long one until its seconds are over or somebody interrupts it."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.disable(logging.WARNING)
    dice, table, began = random.Random(arguments.seed), Table(FAULTS, [f"{kind}/{status}" for kind, status in boundaries.CANCELS]), time.monotonic()
    table.not_run = lacking()
    sentences: list[str] = []
    other: Table | None = None
    with tempfile.TemporaryDirectory(prefix="qg-chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            databases = [False] if ON_POSTGRES[0] in table.not_run else [False, True]
            while True:
                for number, on_postgres in enumerate(databases):
                    goal = table.injected.total() + INJECTIONS if arguments.long else INJECTIONS * (number + 1) // len(databases)
                    _one(folder, table, dice, on_postgres=on_postgres, goal=goal, sentences=sentences, end=arguments.seconds + began)
                if not arguments.long or time.monotonic() - began > arguments.seconds:
                    break
        except KeyboardInterrupt:
            print("interrupted; what was seen so far:")
            arguments.no_control, arguments.write = True, False
        seconds = time.monotonic() - began
        title = f"Quadgate on {' and '.join(('SQLite', 'PostgreSQL')[: len(databases)])}, seed {arguments.seed}, {seconds:.0f} s"
        print(f"\n{title}\n")
        print("\n".join(table.lines()), *sentences, sep="\n")
        if not arguments.no_control:
            print("\nThe control, a long-running Celery task with late acknowledgement, must show losses or doubles:\n", flush=True)
            (folder / "control").mkdir()
            other = control.run(folder / "control", dice)
            print("\n".join(other.lines()))
    enough = arguments.long or table.injected.total() >= INJECTIONS
    missing = [fault for fault, count in table.injected.items() if not count and fault not in table.not_run]
    met = table.canceled + table.refused
    kinds = dict.fromkeys(where.partition("/")[0] for where in table.canceled)
    missing += [f"cancel at a {kind}" for kind in kinds if not sum(n for where, n in met.items() if where.startswith(f"{kind}/"))]
    missing += [] if table.cancels.alone else ["a cancel that nothing else struck"]
    missing += [] if table.reader_breaks else ["a reader of an event stream whose connection broke"]
    short_of = []
    if other is not None and not control.shows(other):
        short_of.append("The control lost and doubled nothing under any injected fault: this lane cannot see what it is for.")
    if not enough or (missing and not arguments.long):
        short_of.append(f"Not enough was injected: {table.injected.total()} of {INJECTIONS}; never: {', '.join(missing) or '-'}")
    if os.environ.get("CI") == "true" and table.not_run:
        short_of.append(f"NOT RUN, which is a failure under CI=true: {', '.join(sorted(table.not_run))}")
    print(*short_of, sep="\n")
    if arguments.write:
        page.write(page.lines(title, table, other, short_of))
    return 0 if table.clean and not short_of else 1


def _one(folder: Path, table: Table, dice: random.Random, *, on_postgres: bool, goal: int, sentences: list[str], end: float) -> None:
    lane = Lane(folder, table, dice, on_postgres=on_postgres)
    lane.sentences = sentences
    print(f"== {'PostgreSQL' if on_postgres else 'SQLite'}", flush=True)
    with lane.service():
        lane.undisturbed()
        while table.injected.total() < goal and time.monotonic() < end:
            lane.wave()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lanes.chaos", description=__doc__)
    parser.add_argument("--long", action="store_true", help="go on until interrupted, or until --seconds are over")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--no-control", action="store_true")
    parser.add_argument("--write", action="store_true", help="put what was printed into docs/chaos.md, whatever it says; an interrupted run never is")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
