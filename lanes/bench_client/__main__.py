"""`make bench-client`: run every client at both concurrencies, in turns, write the table, fail when a limit is not kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from app.targets.probe_archive import build_probe
from lanes.bench_client.cell import PACE, Outcome, run_cell, scheduling
from lanes.bench_client.clients import CLIENTS, OURS, OUTPUT_TOKENS, PROMPT_TOKENS, ROOT, Cell, NotRunError
from lanes.bench_client.table import Row, breaches, markdown
from lanes.bench_client.tokenizer import write_tokenizer

PER_SLOT = {16: 20, 64: 10}  # requests a slot: enough for a p99, few enough for a few minutes


def main() -> int:
    """Return 0 when every limit is kept, 1 when one is not, or nothing could be compared, or (under CI) a peer did not run."""
    parser = argparse.ArgumentParser(prog="make bench-client", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--per-slot", type=int, default=0, help="requests a slot at every concurrency, instead of 20 at 16 and 10 at 64")
    parser.add_argument("--only", action="append", help="a client's name; more than once for several (ours always runs)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "bench-client.md")
    parser.add_argument("--keep", type=Path, help="keep what the clients wrote here")
    parser.add_argument("--from", dest="earlier", type=Path, help="measure nothing: write the page anew from an earlier run's rows.json (--keep)")
    options = parser.parse_args()
    if options.earlier:
        return _again(options)
    folder = Path(options.keep or tempfile.mkdtemp(prefix="bench-client-")).absolute()
    try:
        return _run(options, folder)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _run(options: argparse.Namespace, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    probe, tokenizer = folder / "probe.pyz", folder / "tokenizer"
    build_probe(probe)
    write_tokenizer(tokenizer)
    wanted = [c for c in CLIENTS if c is OURS or not options.only or c.name in options.only]
    pythons: dict[str, Path] = {}
    rows = [Row(client.name, concurrency) for concurrency in PER_SLOT for client in wanted]
    for client in wanted:
        try:
            pythons[client.name] = client.ready()
        except NotRunError as error:
            _not_run(rows, client.name, str(error))
    versions = [client.version(pythons[client.name]) for client in wanted if client.name in pythons]
    loads, began = [os.getloadavg()[0]], time.monotonic()
    for turn in range(options.rounds):
        for concurrency, per_slot in PER_SLOT.items():
            for client in wanted:
                row = next(r for r in rows if r.client == client.name and r.concurrency == concurrency)
                if row.not_run:
                    continue
                cell = folder / f"{client.name.replace(' ', '-')}-c{concurrency}-{turn}"
                cell.mkdir(exist_ok=True)
                requests = concurrency * (options.per_slot or per_slot)
                try:
                    outcome = run_cell(client, pythons[client.name], Cell("", concurrency, requests, cell, tokenizer, probe))
                except NotRunError as error:
                    row.not_run = str(error)
                    print(f"{client.name} c{concurrency}: NOT RUN, {error}", file=sys.stderr, flush=True)
                    continue
                row.outcomes.append(outcome)
                print(f"{client.name} c{concurrency} turn {turn + 1}: {outcome.wall_s:.1f} s", file=sys.stderr, flush=True)
    loads.append(os.getloadavg()[0])
    took, broken = time.monotonic() - began, breaches(rows, OURS.name)
    facts = _conditions(options.rounds, took, loads, versions)
    (folder / "rows.json").write_text(json.dumps({"rows": [asdict(row) for row in rows], "facts": facts}), encoding="utf-8")
    return _written(options, rows, broken, facts)


def _again(options: argparse.Namespace) -> int:
    """Write the page of an earlier run."""
    kept = json.loads(options.earlier.read_text(encoding="utf-8"))
    rows = [Row(**{**row, "outcomes": [Outcome(**one) for one in row["outcomes"]]}) for row in kept["rows"]]
    return _written(options, rows, breaches(rows, OURS.name), kept["facts"])


def _written(options: argparse.Namespace, rows: list[Row], broken: list[str], facts: dict[str, str]) -> int:
    text = markdown(rows, broken, facts, OURS.name)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    absent = any(row.not_run for row in rows) and os.environ.get("CI") == "true"
    return 1 if broken or absent else 0


def _conditions(rounds: int, took: float, loads: list[float], versions: list[str]) -> dict[str, str]:
    first, spread, gap = PACE[1], PACE[3], PACE[5]
    turns = f"{rounds} rounds, the clients in turns so that the machine's noise hits all alike"
    machine = f"{os.cpu_count()} processors shared by server and client, loopback, Linux {platform.release()}, Python {platform.python_version()}"
    return {
        "when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {took / 60:.1f} minutes, {turns}",
        "machine": machine,
        "truth server": f"{scheduling()}, so that its stamps are close to its writes for every client alike",
        "load average": f"{loads[0]:.1f} before, {loads[1]:.1f} after; the lane itself makes about 1.5, the rest is other work on the machine",
        "work": f"{PROMPT_TOKENS} tokens in, {OUTPUT_TOKENS} out, streamed completions; first text after {first} to {int(first) + int(spread)} ms, "
        f"then a token every {gap} ms",
        "clients": ", ".join(filter(None, versions)),
    }


def _not_run(rows: list[Row], client: str, why: str) -> None:
    for row in rows:
        if row.client == client:
            row.not_run = why
    print(f"{client}: NOT RUN, {why}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
