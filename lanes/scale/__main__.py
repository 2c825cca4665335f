"""`python -m lanes.scale [--soaks 10,100,1000] [--seconds 240]`: measure, print the table, write scale.json; 1 when a limit is breached."""

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
TOGETHER = (1, 2, 5, 10, 20)  # hosts of one real poll


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
        found = _measure(folder, arguments, on_postgres=on_postgres)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print("\n".join(["", *table.lines(found), "", f"written to {arguments.out}"]))
    if arguments.write:
        table.write(found)
    for breach in (breaches := table.breaches(found)):
        print(f"BREACHED: {breach}")
    if not on_postgres:
        print(f"{NOT_RUN}more than {SQLITE_MOST} soaks. {NEEDS['postgres'].lacking}")
    return 1 if breaches or (not on_postgres and os.environ.get("CI") == "true") else 0


def _measure(folder: Path, arguments: argparse.Namespace, *, on_postgres: bool) -> dict[str, Any]:
    (folder / "real").mkdir()
    configure(folder / "real", database="")
    print("a real poll", flush=True)
    polls = [real.poll(folder / "real", hosts, arguments.rate) for hosts in (TOGETHER if arguments.real else TOGETHER[:1])]
    first = polls[0]
    reply = next(iter(first.result["replies"].values()))
    script = {"events": first.events, "stats": first.result["stats"], "reply": reply, "seconds": first.wall_s, "rate": arguments.rate}
    rows = []
    for count in arguments.soaks:
        if on_postgres or count <= SQLITE_MOST:
            rows.append(measure(folder, script, count, arguments.seconds, on_postgres=on_postgres, tell=lambda what: print(what, flush=True)))
    told = [{"hosts": p.hosts, "cpu_s": p.cpu_s, "wall_s": p.wall_s, "events": len(p.events)} for p in polls]
    return {"database": "PostgreSQL" if on_postgres else "SQLite", "cores": os.cpu_count(), "rate": arguments.rate, "real": told, "rows": rows}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lanes.scale", description=__doc__)
    parser.add_argument("--soaks", type=lambda text: [int(n) for n in text.split(",")], default=[10, 100, 1000], help="how many at once, e.g. 10,100")
    parser.add_argument("--seconds", type=float, default=240.0, help="of measuring, for each number")
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second of each soak, which a poll brings home")
    parser.add_argument("--no-real", dest="real", action="store_false", help="make one real poll only, not those of many hosts")
    parser.add_argument("--out", type=Path, default=Path("out/scale.json"))
    parser.add_argument("--write", action="store_true", help="put the figures into docs/scaling.md")
    parser.add_argument("--write-only", action="store_true", help="the same from the file of an earlier run")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
