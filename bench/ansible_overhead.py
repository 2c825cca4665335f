"""What the engine costs beside the bare `ansible-playbook`: 200 `command` tasks (at most 1.10 of its wall time) and 200 `debug` tasks (at most 1.40).

    .venv/bin/python bench/ansible_overhead.py [--tasks 200] [--pairs 4] [--only command|debug]

Bare: the program, with the environment, inventory and variables that the engine gives it, its output thrown away. Engine: a real attempt from the
move that starts the playbook to the commit that ends the step: run directory, detached host, ansible-runner, redaction, every event in the
database (SQLite, synchronous FULL), which must be as many as the runner counted; moves follow the hints of a real broker, as a worker does.
Runs alternate A B B A; the median of the ratios of neighbours counts. A ratio above its limit ends in exit 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LIMITS = {"command": 1.10, "debug": 1.40}
TASKS = {"command": "ansible.builtin.command: /bin/true", "debug": "ansible.builtin.debug: {msg: a line of some words}"}
NODE, WATCH_S, LONG_S = "bench", 1.0, 900.0


def main() -> int:
    """Measure both kinds of tasks, print a table, and hold the ratios against their limits."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, default=200)
    options.add_argument("--pairs", type=int, default=4, help="at least 3 for a median that means something")
    options.add_argument("--only", choices=sorted(LIMITS))
    chosen = options.parse_args()
    breaches = []
    with _service() as folder:
        print(f"{chosen.tasks} tasks on one local host, {chosen.pairs} pairs, alternating; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for kind in [chosen.only] if chosen.only else sorted(LIMITS):
            _write(folder / f"{kind}.yml", kind, chosen.tasks)
            ratios, times = _measure(kind, chosen.pairs)
            ratio = statistics.median(ratios)
            bare, ours = (statistics.median(one) for one in zip(*times, strict=True))
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            print(f"{kind:<8} bare {bare:6.2f} s  engine {ours:6.2f} s  ratio {ratio:.3f} ({spread}), at most {LIMITS[kind]:.2f}", flush=True)
            if ratio > LIMITS[kind]:
                breaches.append(f"{kind}: {ratio:.3f} is above {LIMITS[kind]:.2f}")
    print("\n".join(breaches) or "all limits kept")
    return 1 if breaches else 0


@contextmanager
def _service() -> Iterator[Path]:
    """Give a folder of playbooks, with a state directory, a migrated database and a real broker behind the settings."""
    folder = Path(tempfile.mkdtemp(prefix="qg-"))
    os.environ.update(QUADGATE_STATE_DIR=str(folder / "state"), QUADGATE_DATABASE_URL="", QUADGATE_BROKER_URL="", QUADGATE_NODE=NODE)
    os.environ.update(QUADGATE_PLAYBOOK_DIR=str(folder / "playbooks"))
    (folder / "playbooks").mkdir()
    from app.kit.migrate import upgrade
    from app.up import broker

    server = None
    try:
        upgrade()
        sock = broker.socket_path(folder / "state")
        server = subprocess.Popen(broker.argv(broker.server_program(), sock, folder / "broker"), stdout=subprocess.DEVNULL)
        while not broker.answers(sock):
            time.sleep(0.02)
        yield folder / "playbooks"
    finally:
        if server:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _write(path: Path, kind: str, tasks: int) -> None:
    rows = "".join(f"    - name: task {n}\n      {TASKS[kind]}\n" for n in range(tasks))
    path.write_text(f"- name: {kind}\n  hosts: engine\n  gather_facts: false\n  tasks:\n{rows}")


def _measure(kind: str, pairs: int) -> tuple[list[float], list[tuple[float, float]]]:
    """Return the ratios and the seconds of each pair; one of each goes before, unmeasured, so that both find warm files."""
    _bare(kind)
    _engine(kind)
    times = []
    for n in range(pairs):
        if n % 2 == 0:
            bare, ours = _bare(kind), _engine(kind)
        else:
            ours, bare = _engine(kind), _bare(kind)
        times.append((bare, ours))
    return [ours / bare for bare, ours in times], times


def _attempt(kind: str) -> str:
    from tests.engine_kit import make_attempt, playbook_step

    return make_attempt(playbook_step(playbook=f"{kind}.yml"))


def _bare(kind: str) -> float:
    """Run the program by itself, with what the engine would give it."""
    from app.engine import drive, runs
    from app.engine.context import load

    attempt = _attempt(kind)
    ctx = load(attempt, owner="bench:1", node=NODE)
    run = drive._run(ctx, drive.Order("run", f"{kind}.yml", "starting", 900), "bare-1")
    run.folder.mkdir(mode=0o700, parents=True)
    environment = runs.prepare(run)
    private = run.folder / "private"
    argv = ["ansible-playbook", str(run.playbook), "-i", str(private / "inventory.json"), "-e", f"@{private / 'vars.json'}"]
    began = time.monotonic()
    subprocess.run(argv, env=environment, cwd=run.playbook.parent, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    seconds = time.monotonic() - began
    runs.clean(attempt, run.folder)
    return seconds


def _engine(kind: str) -> float:
    """Take an attempt through the step, moved by its hints and, like the tick does, when it is due. Every event must be in the database."""
    import redis
    from sqlalchemy import func, select

    from app.attempts.models import StepEvent
    from app.engine import durable, runs
    from app.engine.advance import advance
    from app.kit.db import read_session
    from app.settings import settings
    from app.up.broker import socket_path
    from tests.engine_kit import attempt_of, steps_of

    attempt = _attempt(kind)
    advance(attempt, 0)  # queued -> running
    hints = redis.Redis(unix_socket_path=str(socket_path(settings().state_dir)))
    hints.flushall()
    began = time.monotonic()
    advance(attempt, None)
    while (step := steps_of(attempt)[0]).status != "done":
        assert attempt_of(attempt).status == "running", attempt_of(attempt).problem
        assert time.monotonic() < began + LONG_S
        hints.blpop([f"steps@{NODE}"], timeout=WATCH_S)
        advance(attempt, None)
    seconds = time.monotonic() - began
    result: dict[str, Any] = durable.read_json(runs.folder_of(attempt, "survey", "run-1") / "result.json") or {}
    with read_session() as s:
        stored = s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.step_id == step.id))
    assert stored == result["events"] > 0, (stored, result.get("events"))
    assert result["events_lost"] == 0
    return seconds


if __name__ == "__main__":
    raise SystemExit(main())
