"""`python -m lanes.scale [--soaks 10,100,1000] [--seconds 240] [--rounds]`: measure, print, write scale.json; 1 when a limit is breached."""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any

from lanes.scale import real, table
from lanes.scale.journal import RATE
from lanes.scale.run import measure
from lanes.scale.service import configure
from tests.needs import NEEDS, NOT_RUN, postgres_programs

SQLITE_MOST = 100  # soaks; SQLite is for one machine and a handful of engagements (docs/operations.md)
TARGETS = (1, 4, 16)  # due at once: real polls, singly and as a round


def main() -> int:
    """Run the lane."""
    arguments = _arguments()
    if arguments.write_only:
        table.write(json.loads(arguments.out.read_text()))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.disable(logging.WARNING)
    on_postgres = postgres_programs() is not None
    folder = Path(tempfile.mkdtemp(prefix="qg-scale-"))
    try:
        found = _rounds(folder, arguments) if arguments.rounds else _measure(folder, arguments, on_postgres=on_postgres)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print("\n".join(["", *(line for _, lines in table.parts(found) for line in lines), "", f"written to {arguments.out}"]))
    if arguments.write:
        table.write(found)
    for breach in (breaches := table.breaches(found)):
        print(f"BREACHED: {breach}")
    if not on_postgres and not arguments.rounds:
        print(f"{NOT_RUN}more than {SQLITE_MOST} soaks. {NEEDS['postgres'].lacking}")
    return 1 if breaches or (not on_postgres and not arguments.rounds and os.environ.get("CI") == "true") else 0


def _rounds(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure real polls alone."""
    (folder / "real").mkdir()
    configure(folder / "real", database="")
    pairs = [_both(folder / "real", targets, arguments.rate) for targets in TARGETS]
    return {"cores": os.cpu_count(), "rate": arguments.rate, "real": [_told(*pair) for pair in pairs], "rows": []}


def _both(folder: Path, targets: int, rate: float) -> tuple[real.Played, real.Played]:
    print(f"{targets} real polls, singly and as a round", flush=True)
    singly = real.polls(folder, targets, rate, together=False)
    return singly, real.polls(folder, targets, rate, together=True) if targets > 1 else singly  # a round of one is the single poll


def _told(singly: real.Played, together: real.Played) -> dict[str, Any]:
    told = {"singly": singly, "together": together}
    figures = {name: {"cpu_s": one.cpu_s, "wall_s": one.wall_s, "processes": one.processes} for name, one in told.items()}
    return {"targets": singly.targets, "events": len(singly.events), **figures}


def _measure(folder: Path, arguments: argparse.Namespace, *, on_postgres: bool) -> dict[str, Any]:
    (folder / "real").mkdir()
    configure(folder / "real", database="")
    pairs = [_both(folder / "real", targets, arguments.rate) for targets in (TARGETS if arguments.real else TARGETS[:1])]
    first = pairs[0][0]
    reply = next(iter(first.result["replies"].values()))
    script = {"events": first.events, "stats": first.result["stats"], "reply": reply, "seconds": first.wall_s, "rate": arguments.rate}
    rows = []
    for count in arguments.soaks:
        if on_postgres or count <= SQLITE_MOST:
            rows.append(measure(folder, script, count, arguments.seconds, on_postgres=on_postgres, tell=lambda what: print(what, flush=True)))
    told = {"cores": os.cpu_count(), "rate": arguments.rate, "real": [_told(*pair) for pair in pairs]}
    return {"database": "PostgreSQL" if on_postgres else "SQLite", **told, "rows": rows}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lanes.scale", description=__doc__)
    parser.add_argument("--soaks", type=lambda text: [int(n) for n in text.split(",")], default=[10, 100, 1000], help="how many at once, e.g. 10,100")
    parser.add_argument("--seconds", type=float, default=240.0, help="of measuring, for each number")
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second of each soak, which a poll brings home")
    parser.add_argument("--no-real", dest="real", action="store_false", help="make one real poll only, not those of many targets")
    parser.add_argument("--rounds", action="store_true", help="make the real polls only (two minutes)")
    parser.add_argument("--out", type=Path, default=Path("out/scale.json"))
    parser.add_argument("--write", action="store_true", help="put the figures into docs/scaling.md")
    parser.add_argument("--write-only", action="store_true", help="the same from the file of an earlier run")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
