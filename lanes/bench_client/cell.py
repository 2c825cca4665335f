"""One run of one client against a fresh server of known truth: receipts joined with the server's own stamps, and what it cost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanes.bench_client.clients import ENVIRONMENT, Cell, Client, NotRunError

SECONDS = 240.0  # a bound against hanging
PACE = ("--ttft-ms", "150", "--spread-ms", "100", "--gap-ms", "20")
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Outcome:
    """What one run showed. Errors are ns: receipt minus the server's send stamp of the same request."""

    asked: int
    errors: list[int] = field(default_factory=list)
    read_errors: list[int] = field(default_factory=list)
    ttfts: list[int] = field(default_factory=list)  # the client's own, ns, of the joined requests
    cpu_s: float = 0.0
    load_cpu_s: float = 0.0
    wall_s: float = 0.0


def run_cell(client: Client, python: Path, cell: Cell) -> Outcome:
    """Run it. Raises NotRunError with a sentence when the client fails or leaves nothing that can be joined."""
    journal = cell.folder / "truth.jsonl"
    serve = [sys.executable, "-I", str(cell.probe), "calibration-server", *PACE, "--expect", str(cell.requests), "--journal", str(journal)]
    with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise NotRunError("the truth server has no pipes")
        port = json.loads(server.stdout.readline())["port"]
        _prefer(server.pid)
        here = Cell(f"http://127.0.0.1:{port}", cell.concurrency, cell.requests, cell.folder, cell.tokenizer, cell.probe)
        try:
            result, load_cpu = _launch(client.command(python, here), cell.folder, server.stdout)
        finally:
            server.stdin.close()
            server.wait(30)
    if result["exit_code"] != 0:
        why = "did not end in time" if result["timed_out"] else f"ended with {result['exit_code']}"
        lines = (cell.folder / "client.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise NotRunError(f"the client {why}: {(lines or ['it said nothing'])[-1][-200:]}")
    outcome = Outcome(cell.requests, cpu_s=result["cpu_s"], load_cpu_s=load_cpu, wall_s=result["wall_s"])
    _join(client, here, journal, outcome)
    return outcome


def _prefer(pid: int) -> bool:
    """Give the truth server real-time priority: between its stamp and its write nothing else then takes its processor. It sleeps nearly always."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    return True


def scheduling() -> str:
    """Return how the truth server is scheduled on this machine, in words."""
    with subprocess.Popen(["sleep", "5"]) as trial:
        preferred = _prefer(trial.pid)
        trial.kill()
    return "at real-time priority" if preferred else "at ordinary priority (real-time is not permitted to this user)"


def _launch(command: list[str], folder: Path, events: Any) -> tuple[dict[str, Any], float]:
    """Run the client below the launcher. Return its result and the CPU seconds that its tree used between first request and last answer."""
    result = folder / "result.json"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QUADGATE_")}
    environment.update(ENVIRONMENT)
    launcher = [sys.executable, "-I", str(Path(__file__).with_name("launch.py")), str(result), str(SECONDS), *command]
    with (folder / "client.log").open("wb") as log:
        process = subprocess.Popen(launcher, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=folder)
        used: dict[str, float] = {}

        def watch() -> None:
            for line in events:
                used[json.loads(line).get("event", "")] = _tree_cpu(process.pid)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        process.wait(SECONDS + 60)
    found: dict[str, Any] = json.loads(result.read_text(encoding="ascii"))
    return found, used.get("last", float("nan")) - used.get("first", float("nan"))


def _tree_cpu(root: int) -> float:
    """Return user + system seconds of a process tree so far, with the children that it has waited for."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)], ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    tree, grew = {root}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in tree} - tree
        tree |= more
        grew = bool(more)
    return sum(ticks.get(pid, 0) for pid in tree) / TICK


def _join(client: Client, cell: Cell, journal: Path, outcome: Outcome) -> None:
    truths: dict[str, dict[str, Any]] = {}
    for row in map(json.loads, journal.read_text(encoding="ascii").splitlines()):
        truths[row["word"]] = row
        if row["id"]:
            truths[row["id"]] = row
    try:
        receipts = client.receipts(cell)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise NotRunError(f"its results cannot be read: {type(error).__name__} {error}") from error
    for receipt in receipts:
        truth = truths.get(receipt.key)
        if truth is None or not truth["sends_ns"]:
            continue
        sent = truth["sends_ns"][0]
        outcome.errors.append(receipt.ns - sent - (truth["wall_ahead_ns"] if receipt.wall else 0))
        if receipt.ttft_ns is not None:
            outcome.ttfts.append(receipt.ttft_ns)
        if receipt.read_ns is not None:
            outcome.read_errors.append(receipt.read_ns - sent)
    if len(outcome.errors) < cell.requests * 0.95:
        raise NotRunError(f"only {len(outcome.errors)} of {cell.requests} requests can be joined with the server's account")
