"""`python -m lanes.chaos [--long] [--seed N] [--seconds S] [--waves gates] [--write]`: the lane and its control; 0 when nothing was lost."""

from __future__ import annotations

import argparse
import logging
import random
import time

from lanes.chaos import scaled

scaled.shorten()  # before the engine is imported
scaled.bend_clock()

from lanes.chaos import boundaries, control, page  # noqa: E402
from lanes.chaos.faults import FAULTS  # noqa: E402
from lanes.chaos.ground import ground  # noqa: E402
from lanes.chaos.lane import ON_POSTGRES, Lane, lacking  # noqa: E402
from lanes.chaos.table import Table  # noqa: E402
from lanes.chaos.whole import INJECTIONS, short_of  # noqa: E402

EXTRA_WAVES = 2
WAVES = ("gates", "soaks")  # engagements through the four gates; attempts of G4 alone


def main() -> int:
    """Run the short lane, or the long one until its seconds are over or somebody interrupts it."""
    arguments = _arguments()
    logging.disable(logging.WARNING)
    dice, began = random.Random(arguments.seed), time.monotonic()
    table = Table(FAULTS, [f"{kind}/{status}" for kind, status in boundaries.CANCELS], boundaries.STEPS)
    table.not_run = lacking()
    sentences: list[str] = []
    other: Table | None = None
    databases = [False] if ON_POSTGRES[0] in table.not_run else [False, True]
    databases = databases if "soaks" in arguments.waves else databases[-1:]  # engagements go through the gates on the last one alone
    interrupted = False
    with ground() as folder:
        try:
            while True:
                for number, on_postgres in enumerate(databases):
                    lane = Lane(folder, table, dice, on_postgres=on_postgres)
                    lane.sentences = sentences
                    goal = table.injected.total() + INJECTIONS if arguments.long else INJECTIONS * (number + 1) // len(databases)
                    _one(lane, arguments, goal=goal, end=arguments.seconds + began, last=number == len(databases) - 1)
                if not arguments.long or time.monotonic() - began > arguments.seconds:
                    break
        except KeyboardInterrupt:
            print("interrupted; what was seen so far:")
            interrupted = True
        seconds = time.monotonic() - began
        title = f"Quadgate on {' and '.join(('SQLite', 'PostgreSQL')[on] for on in databases)}, seed {arguments.seed}, {seconds:.0f} s"
        print(f"\n{title}\n")
        print("\n".join(table.lines()), *sentences, sep="\n", flush=True)
        if not (arguments.no_control or arguments.some or interrupted):
            print("\nThe control, a long-running Celery task with late acknowledgement, must show losses or doubles:\n", flush=True)
            (folder / "control").mkdir()
            try:
                other = control.run(folder / "control", dice)
                print("\n".join(other.lines()))
            except KeyboardInterrupt:
                interrupted = True
    whole_s = time.monotonic() - began
    title += f"; in all {whole_s:.0f} s" + (" with the control" if other else "")
    print(f"\nin all {whole_s:.0f} s", flush=True)
    lacks = short_of(table, other, whole_s, long=arguments.long) if not arguments.some else []
    lacks += ["The lane was interrupted."] if interrupted and not arguments.long else []
    print(*lacks, sep="\n")
    if arguments.write and not (interrupted or arguments.some):
        page.write(page.lines(title, table, other, lacks))
    return 0 if table.clean and not lacks else 1


def _one(lane: Lane, arguments: argparse.Namespace, *, goal: int, end: float, last: bool) -> None:
    """Run the waves of one database. The last one has the engagements that go through all gates, and waves until each boundary saw a cancel."""
    table, walks = lane.table, "gates" in arguments.waves and last
    print(f"== {'PostgreSQL' if lane.on_postgres else 'SQLite'}", flush=True)
    with lane.service():
        lane.undisturbed(soaks=2 if "soaks" in arguments.waves else 0, walks=1 if walks else 0)
        if walks:
            before = table.injected.total()
            lane.walk()
            goal += table.injected.total() - before  # what struck there comes on top
        more = EXTRA_WAVES if last and not arguments.long else 0
        while "soaks" in arguments.waves and time.monotonic() < end:
            if table.injected.total() >= goal:
                if not more or not (table.unmet() or table.few()):
                    break
                more -= 1
            lane.wave()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lanes.chaos", description=__doc__)
    parser.add_argument("--long", action="store_true", help="go on until interrupted, or until --seconds are over")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--no-control", action="store_true")
    parser.add_argument("--waves", type=_waves, default=WAVES, help="soaks, gates or both: one alone shows no whole and has no control")
    parser.add_argument("--write", action="store_true", help="put what was printed into docs/chaos.md, whatever it says; an interrupted run never is")
    arguments = parser.parse_args()
    arguments.some = set(arguments.waves) != set(WAVES)
    return arguments


def _waves(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if not set(names) <= set(WAVES):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of {', '.join(WAVES)}")
    return names


if __name__ == "__main__":
    raise SystemExit(main())
