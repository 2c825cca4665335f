"""The control: the same table for a plain long-running Celery task with late acknowledgement, the way a soak is often built.

One task is the whole soak: it says that it began, writes numbered lines for some seconds, and says its verdict. It must show losses or
doubles, which proves that the lane can see them.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import redis
from celery import Celery

from app.settings import ROOT
from app.up import broker
from app.up.part import Part, kill
from lanes.chaos.findings import DOUBLED, LOST
from lanes.chaos.table import Table

SOAK_S, LINES, ENOUGH_S = 5.0, 25, 40.0
VISIBLE_S, LONG_S = 8, 30.0
AT_ONCE, WAITING = 3, 3  # soaks that run, and that wait behind them
FOLDER = Path(os.environ.get("QUADGATE_CHAOS_CONTROL", "."))

app = Celery("control", broker=f"redis+socket://{FOLDER / 'redis.sock'}")
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": VISIBLE_S, "unacked_restore_interval": 1, "unacked_restore_throttle": 1},
)


@app.task(name="soak")
def soak(name: str, seconds: float) -> None:
    """Be the whole soak."""
    _note(name, "began")
    for number in range(LINES):
        _note(name, f"line {number}")
        time.sleep(seconds / LINES)
    _note(name, "pass")


def _note(name: str, text: str) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(text + "\n")


def _kill_worker(parts: dict[str, Part], _: redis.Redis, _names: list[str]) -> None:
    parts["worker"].kill_family()


def _restart_broker(parts: dict[str, Part], _: redis.Redis, _names: list[str]) -> None:
    pid = parts["broker"].pid
    if pid:
        os.kill(pid, signal.SIGKILL)


def _flush(_: dict[str, Part], client: redis.Redis, _names: list[str]) -> None:
    client.flushall()


def _reset(_: dict[str, Part], client: redis.Redis, _names: list[str]) -> None:
    for _n in range(4):
        with suppress(redis.RedisError):
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        time.sleep(0.2)


def _twice(_: dict[str, Part], _client: redis.Redis, names: list[str]) -> None:
    """Deliver every message once more, the last first."""
    for name in reversed(names):
        soak.apply_async((name, SOAK_S), ignore_result=True)


def _nothing(_: dict[str, Part], _client: redis.Redis, _names: list[str]) -> None:
    """Do nothing: the soak is longer than the visibility time-out, as a real one always is."""


NONE = "none, a soak longer than the visibility time-out"
FAULTS: dict[str, Callable[[dict[str, Part], redis.Redis, list[str]], None]] = {
    "SIGKILL worker": _kill_worker,
    "Redis FLUSHALL": _flush,
    "Redis SIGKILL and restart": _restart_broker,
    "Redis connections reset": _reset,
    "messages twice, out of order": _twice,
    NONE: _nothing,
}


def run(folder: Path, dice: random.Random) -> Table:
    """Strike twice with each fault while three soaks run and three wait, and return the table."""
    table = Table(FAULTS)
    environment = {**os.environ, "QUADGATE_CHAOS_CONTROL": str(folder)}
    sock = folder / "redis.sock"
    global FOLDER
    FOLDER = folder
    app.conf.broker_url = f"redis+socket://{sock}"
    argv = [sys.executable, "-m", "celery", "-A", "lanes.chaos.control", "worker", "-c", str(AT_ONCE), "--loglevel", "ERROR", "--without-mingle"]
    parts = {
        "broker": Part("broker", broker.argv(broker.server_program(), sock, folder), environment=environment, cwd=ROOT, log=folder / "broker.log"),
        "worker": Part("worker", [*argv, "--without-gossip"], environment=environment, cwd=ROOT, log=folder / "worker.log"),
    }
    try:
        parts["broker"].start()
        while not broker.answers(sock):
            time.sleep(0.05)
        parts["worker"].start()
        for number, (fault, strike) in enumerate(FAULTS.items()):
            _one(table, fault, strike, parts, folder, [f"{number}-{n}" for n in range(1 if strike is _nothing else AT_ONCE + WAITING)], dice)
    finally:
        family = [pid for part in parts.values() if (pid := part.pid)]
        for part in parts.values():
            part.kill_family()
        kill(family)
    return table


def shows(table: Table) -> bool:
    """Tell whether the control lost or doubled something under a fault that was injected: what it does without one proves nothing of the lane."""
    return any(count for (fault, _), count in table.found.items() if fault != NONE)


def _one(table: Table, fault: str, strike: Callable, parts: dict[str, Part], folder: Path, names: list[str], dice: random.Random) -> None:
    for name in names:
        soak.apply_async((name, LONG_S if strike is _nothing else SOAK_S), ignore_result=True)
    client = redis.Redis(unix_socket_path=str(folder / "redis.sock"))
    _wait(lambda: sum((folder / name).exists() for name in names) >= min(AT_ONCE, len(names)), parts)
    for _ in range(1 if strike is _nothing else 2):
        time.sleep(dice.uniform(0.5, 1.5))
        strike(parts, client, names)
        table.injected[fault] += 1
    _wait(lambda: all(_said(folder, name).count("pass") for name in names), parts)
    time.sleep(2)  # for one that is delivered once more
    for name in names:
        said = _said(folder, name)
        if said.count("began") > 1:
            table.blame([fault], DOUBLED)
        if "pass" not in said:
            table.blame([fault], LOST)


def _said(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


def _wait(done: Callable[[], bool], parts: dict[str, Part]) -> None:
    deadline = time.monotonic() + ENOUGH_S
    while not done() and time.monotonic() < deadline:
        for part in parts.values():
            part.look_after()
        time.sleep(0.1)
