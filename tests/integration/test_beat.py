"""Real beats: the clock is set back under one, another sends nothing; and who is blamed for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.engine import hints, nodes
from app.engine.models import Canary
from app.kit import alive
from app.kit.clock import now
from app.kit.db import write_session
from app.ops import broker
from app.settings import ROOT
from app.up import Supervisor, supervisor
from app.up import broker as server
from app.up.part import Part
from tests.engine_kit import wait_for

ENOUGH_S = 60.0  # for a beat to start on a busy machine, or to send some ticks


@pytest.fixture
def running(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a real broker where the settings look for it."""
    sock = server.socket_path(state)
    process = subprocess.Popen(server.argv(server.server_program(), sock, state / "broker"), stdout=subprocess.DEVNULL)
    wait_for(lambda: server.answers(sock), ENOUGH_S)
    yield process
    process.kill()
    process.wait(10)


@pytest.fixture
def beat(state: Path, running: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run beat as the service does, with a clock that the file `back` sets back by two hours, and little patience with itself."""
    argv = ["tests.engine_kit.beat" if word == "app.worker.app" else word for word in supervisor.beat_argv(state)]
    url = f"redis+socket://{server.socket_path(state)}"
    environment = {**os.environ, "QUADGATE_BROKER_URL": url, "QUADGATE_ALIVE_FILE": str(state / "alive"), "BACK": str(state / "back")}
    with (state / "beat.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=ROOT, env={**environment, "QUADGATE_TICK_SECONDS": "0.1"}, stdout=log, stderr=log)
    wait_for(lambda: sent() > 0 or process.poll() is not None, ENOUGH_S)
    yield process
    process.kill()
    process.wait(10)


def sent() -> int:
    return broker.depths([hints.TICK])[hints.TICK]


def test_ticks_go_on_behind_a_clock_that_is_set_back(beat: subprocess.Popen[bytes], state: Path) -> None:
    (state / "back").touch()
    wait_for(lambda: (state / "back").read_text() == "set", ENOUGH_S)
    before = sent()
    wait_for(lambda: sent() > before + 5, ENOUGH_S)
    assert beat.poll() is None


def test_a_beat_that_reaches_no_broker_ends_itself(beat: subprocess.Popen[bytes], running: subprocess.Popen[bytes], state: Path) -> None:
    running.kill()
    assert beat.wait(ENOUGH_S) in (0, -signal.SIGTERM)
    assert "this process ends" in (state / "beat.log").read_text()


@pytest.fixture
def watched(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Part]]:
    """Return what puts a living process that does nothing under a supervisor, as one of its parts."""
    ours, parts = Supervisor(), list[Part]()
    monkeypatch.setattr(supervisor, "Supervisor", lambda: ours)

    def put(name: str) -> Part:
        parts.append(Part(name, [sys.executable, "-c", "import time; time.sleep(600)"], environment=os.environ, cwd=ROOT, log=state / name))
        parts[-1].start()
        ours._parts[name] = parts[-1]
        return parts[-1]

    yield put
    for part in parts:
        part.kill_family()


def test_a_clock_that_jumps_forward_makes_no_worker_deaf_and_silence_does(watched: Callable[[str], Part], monkeypatch: pytest.MonkeyPatch) -> None:
    service, worker = supervisor.Supervisor(), watched("worker")
    worker._started -= 3600
    for ago in (timedelta(), timedelta(hours=4), -timedelta(hours=2)):
        with write_session() as s:
            s.merge(Canary(name=nodes.CANARY, returned_at=now() - ago))
        assert not service._deaf()
    monkeypatch.setattr(supervisor, "CANARY_LATE_S", 0.1)
    time.sleep(0.2)
    assert service._deaf()
    nodes.canary_returned()
    assert not service._deaf()


def test_a_beat_that_sends_nothing_is_replaced_and_no_worker_for_it(
    watched: Callable[[str], Part], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "BEAT_LATE_S", 0.5)
    monkeypatch.setattr(supervisor, "CANARY_LATE_S", 1.0)
    service, worker, beat = supervisor.Supervisor(), watched("worker"), watched("beat")
    first, file = beat.pid, service._beat_file
    for _ in range(2):  # it was heard from
        service._look_after()
        file.touch()

    def replaced() -> bool:
        service._look_after()
        return beat.pid not in (None, first)

    wait_for(replaced, ENOUGH_S)
    assert (beat.restarts, worker.restarts) == (1, 0)
    os.utime(file, ns=(0, (alive.touched(file) or 0) - 10**12))  # by a clock that was set back
    service._look_after()
    assert not service._stuck()
