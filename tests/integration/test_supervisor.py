"""The one-machine supervisor with real parts: broker, worker, beat."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine import marker
from app.kit.errors import Refused
from app.settings import ROOT, settings
from app.up import Supervisor
from app.up.broker import answers, socket_path
from app.up.leftovers import SUPERVISED, local_lab
from tests.engine_kit import PLAYBOOKS, attempt_of, ended, job_step, make_attempt, manual_step, playbook_step, steps_of, wait_for
from tests.processes import mentions

pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture
def service(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    settings.cache_clear()
    supervisor = Supervisor()
    supervisor.start(web=False)
    yield supervisor
    supervisor.stop()


def test_an_attempt_goes_through_celery_and_nothing_is_left_when_the_service_stops(service: Supervisor, state: Path) -> None:
    attempt_id = make_attempt(playbook_step())
    wait_for(lambda: ended(attempt_of(attempt_id)))
    assert attempt_of(attempt_id).status == "finished"
    assert service.health().ok
    with pytest.raises(Refused):
        Supervisor().start(web=False)
    assert mentions(state)
    service.stop()
    assert mentions(state) == []
    assert marker.carriers(str(state), SUPERVISED) == []


def test_stopping_cancels_what_runs_and_ends_the_job_on_this_machine(service: Supervisor, state: Path) -> None:
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 120, "lines": 10}))
    waiting = make_attempt(manual_step())
    os.kill(service.pids()["beat"], signal.SIGKILL)  # it is started again, or nothing would move below
    wait_for(lambda: steps_of(attempt_id)[0].status == "running")
    started = next((state / "lab").glob("*/gpu01/jobs/*/started"))
    assert marker.state(int(started.read_text())) not in ("", "Z")
    assert service.restarts()["beat"] == 1
    service.stop()
    assert attempt_of(attempt_id).status == "canceled"
    assert attempt_of(waiting).status == "waiting"  # it runs nothing, and a person may take days
    assert mentions(state) == []


def test_a_broker_that_lives_but_lost_its_socket_is_started_again(service: Supervisor, state: Path) -> None:
    before = service.pids()["broker"]
    socket_path(state).unlink()
    wait_for(lambda: service.pids().get("broker") not in (None, before) and answers(socket_path(state)))
    assert service.restarts()["broker"] == 1


def test_what_a_killed_supervisor_left_is_ended_and_what_a_living_one_runs_is_not(state: Path) -> None:
    code = "from app.up import Supervisor; import time; s = Supervisor(); s.start(web=False, wait=False); print('up', flush=True); time.sleep(600)"
    first = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"up\n"
    first.kill()
    first.wait()
    left = mentions(state)
    assert len(left) >= 3  # broker, worker, beat
    # Who wants to delete the state folder asks for this first: with the folder goes the record of what was left.
    Supervisor().end_leftovers()
    assert mentions(state) == []
    supervisor = Supervisor()
    try:
        supervisor.start(web=False, wait=False)
        with pytest.raises(Refused):
            Supervisor().end_leftovers()  # its state is in use
        assert len(mentions(state)) >= 3
    finally:
        supervisor.stop()
    assert mentions(state) == []


def test_a_taken_port_is_said_at_once_and_nothing_is_started(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        monkeypatch.setenv("QUADGATE_WEB_PORT", str(port))
        settings.cache_clear()
        supervisor = Supervisor()
        with pytest.raises(Refused, match=f"on 127.0.0.1 port {port}: Address already in use. Set QUADGATE_WEB_PORT"):
            supervisor.start(web=True)
        assert supervisor.pids() == {}
        assert mentions(state) == []
    supervisor.start(web=True)  # the state directory is free again, and so is the port
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:  # started means that the pages answer
            assert answer.status == 200
    finally:
        supervisor.stop()
    assert mentions(state) == []


def test_an_engine_that_runs_from_elsewhere_is_found_by_its_working_directory(tmp_path: Path) -> None:
    folder = tmp_path / "lab" / "JT-1" / "gpu01" / "engine"
    folder.mkdir(parents=True)
    inside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=folder, start_new_session=True)
    beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=tmp_path, start_new_session=True)
    try:
        wait_for(lambda: local_lab(tmp_path) == [inside.pid], 10)
    finally:
        for process in (inside, beside):
            process.kill()
            process.wait()


def test_a_state_directory_with_a_long_name_gets_a_short_socket(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    assert len(os.fsencode(socket_path(long))) <= 100
    assert socket_path(long) == socket_path(long)
    assert socket_path(long) != socket_path(long / "y")
    assert socket_path(long).parent.stat().st_mode & 0o077 == 0


def test_a_database_that_is_away_says_nothing_about_the_worker_and_the_watch_goes_on(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    from app.up import supervisor

    def away() -> None:
        raise OperationalError("SELECT", {}, Exception("the server closed the connection"))

    monkeypatch.setattr(supervisor, "CANARY_LATE_S", 0.0)
    monkeypatch.setattr(supervisor, "read_session", away)
    watched = Supervisor()
    part = supervisor.Part("worker", [sys.executable, "-c", "input()"], environment=dict(os.environ), cwd=ROOT, log=state / "worker.log")
    part.alive = lambda: True  # type: ignore[method-assign]
    part._started = -1e9
    watched._parts["worker"] = part
    assert not watched._deaf()
