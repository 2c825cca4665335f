"""The one-machine supervisor with real parts: broker, worker, beat."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.attempts.models import Attempt
from app.engine import marker, shutdown
from app.engine.policy import STOP_GRACE_S
from app.kit.db import write_session
from app.kit.errors import Refused
from app.settings import ROOT, settings
from app.up import Supervisor, ending
from app.up.broker import answers, socket_path
from app.up.leftovers import SUPERVISED, local_lab
from gates.text import Text
from tests.engine_kit import PATIENCE_S, PLAYBOOKS, attempt_of, ended, job_step, make_attempt, manual_step, playbook_step, steps_of, wait_for
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


def test_who_stops_the_service_is_told_what_it_waits_for_and_what_may_still_run(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ending.patience_s() > settings().stop_seconds + STOP_GRACE_S  # else a stop that takes its time is cut off
    monkeypatch.setattr(ending, "patience_s", lambda: 0.5)
    monkeypatch.setattr(ending, "TELL_S", 0.0)
    attempt_id, stuck = make_attempt(playbook_step(), code="ONE"), make_attempt(playbook_step(), code="TWO")
    problem = {"code": "not_stopped", "en": "On gpu01 something still runs.", "zh-CN": "主机 gpu01 上仍有进程在运行。"}
    with write_session() as s:
        for one in (attempt_id, stuck):
            s.get_one(Attempt, one).status = "running"

    def engine(asked: Callable[[], list[str]] = shutdown.active) -> list[str]:
        with write_session() as s:
            row = s.get_one(Attempt, attempt_id)
            row.status, row.problem = "canceled", problem
        return asked()

    monkeypatch.setattr(shutdown, "active", engine)
    said: list[Text] = []
    monkeypatch.setattr(ending.shutdown, "cancel_running", lambda reason: [attempt_id, stuck])
    ending.cancel(said.append)
    assert [text.en.split(",")[0] for text in said] == [
        "Waiting until the targets have stopped what ONE G2 #1",
        "Canceled: ONE G2 #1. No attempt starts anew by itself.",
        "TWO G2 #1 could not be stopped within 0 s",
        "On gpu01 something still runs.",
    ]
    assert "TWO G2 #1" in said[0].zh


def test_ctrl_c_while_a_job_measures_cancels_it_and_leaves_nothing(state: Path) -> None:
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 300, "lines": 10}))
    environment = {**os.environ, "QUADGATE_PLAYBOOK_DIR": str(PLAYBOOKS), "LC_ALL": "C.UTF-8"}
    up = subprocess.Popen([ROOT / ".venv/bin/quadgate", "up", "--no-web"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: steps_of(attempt_id)[0].status == "running" or up.poll() is not None)
        job = int(next((state / "lab").glob("*/gpu01/jobs/*/started")).read_text())
        assert marker.state(job) not in ("", "Z")
        up.send_signal(signal.SIGINT)
        text, _ = up.communicate(timeout=PATIENCE_S)
    finally:
        up.kill()
        up.wait()
    assert up.returncode == 0, text
    assert b"may still run" not in text
    assert (attempt_of(attempt_id).status, attempt_of(attempt_id).problem) == ("canceled", None)
    assert marker.state(job) in ("", "Z")
    assert mentions(state) == []


def test_a_broker_that_lives_but_lost_its_socket_is_started_again(service: Supervisor, state: Path) -> None:
    before = service.pids()["broker"]
    socket_path(state).unlink()
    wait_for(lambda: service.pids().get("broker") not in (None, before) and answers(socket_path(state)))
    assert service.restarts()["broker"] == 1


def test_a_scheduler_that_is_stopped_is_replaced_the_worker_is_not_and_work_goes_on(service: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.up import supervisor

    before = service.pids()
    monkeypatch.setattr(supervisor, "BEAT_LATE_S", 3.0)
    os.kill(before["beat"], signal.SIGSTOP)
    wait_for(lambda: service.pids().get("beat") not in (None, before["beat"]))
    attempt_id = make_attempt(playbook_step())  # the tick alone finds it
    wait_for(lambda: ended(attempt_of(attempt_id)))
    assert (service.restarts()["beat"], service.restarts()["worker"]) == (1, 0)
    assert service.pids()["worker"] == before["worker"]


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


def test_a_disk_that_refuses_the_record_ends_no_watch_and_the_record_is_made_good(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.up import supervisor

    monkeypatch.setattr(supervisor, "AGAIN_S", 0.05)
    refused, real = [], supervisor.leftovers.write_down

    def full(path: Path, pids: dict[str, int]) -> None:
        if len(refused) < 2:
            refused.append(pids)
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, pids)

    watched = Supervisor()
    part = supervisor.Part("beat", ["sleep", "60"], environment=dict(os.environ), cwd=ROOT, log=state / "beat.log")
    watched._parts["beat"] = part
    monkeypatch.setattr(supervisor.leftovers, "write_down", full)
    watcher = threading.Thread(target=watched._watch, daemon=True)
    watcher.start()
    try:
        wait_for(lambda: len(refused) == 2 and watched._record.exists())
        assert json.loads(watched._record.read_text())["beat"]["pid"] == part.pid
        part.kill_family()
        wait_for(lambda: part.restarts == 2)
    finally:
        watched._over.set()
        watcher.join(10)
        part.kill_family()
