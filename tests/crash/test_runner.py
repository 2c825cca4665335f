"""Playbook hosts in a service of their own: replacing whoever asked for them ends none, and a runner that is away begins none."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine import marker, runner
from app.engine.advance import advance
from app.settings import ROOT, settings
from tests.engine_kit import PATIENCE_S, PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step, steps_of, wait_for

ASKS = "import sys; from app.engine.advance import advance; advance(sys.argv[1], 1); import time; time.sleep(600)"


@pytest.fixture
def site(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    monkeypatch.setenv("QUADGATE_LEASE_SECONDS", "1")
    monkeypatch.setenv("QUADGATE_RUNNER_SOCKET", str(state / "run.sock"))
    settings.cache_clear()
    return state


@pytest.fixture
def service(site: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `quadgate runner` as a process of its own."""
    process = start_runner()
    yield process
    process.kill()
    process.wait(10)


def start_runner() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", "from app.cli import main; main()", "runner"], cwd=ROOT, start_new_session=True)
    wait_for(runner.answers, said="the runner answers")
    return process


def starts_of(attempt_id: str) -> int:
    path = settings().runs_dir / attempt_id / "starts"
    return len(path.read_text().split()) if path.exists() else 0


def test_a_worker_that_is_killed_takes_no_playbook_with_it(service: subprocess.Popen[bytes]) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 2}))
    advance(attempt_id, 0)
    worker = subprocess.Popen([sys.executable, "-c", ASKS, attempt_id], cwd=ROOT, start_new_session=True)
    wait_for(lambda: starts_of(attempt_id))
    assert not set(marker.carriers(attempt_id)) & {worker.pid}
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait(10)
    assert drive(attempt_id, until=ended).status == "finished"
    assert (steps_of(attempt_id)[0].try_no, starts_of(attempt_id)) == (1, 1)


def test_a_runner_that_is_away_begins_nothing_and_costs_no_try(site: Path) -> None:
    attempt_id = make_attempt(playbook_step())
    advance(attempt_id, 0)
    assert advance(attempt_id, attempt_of(attempt_id).generation) is False
    attempt = attempt_of(attempt_id)
    assert (attempt.status, attempt.problem, attempt.lease_owner, starts_of(attempt_id)) == ("running", None, None, 0)
    assert attempt.next_due_at is not None  # comes back by itself
    process = start_runner()
    try:
        assert drive(attempt_id, until=ended).status == "finished"
        assert steps_of(attempt_id)[0].try_no == 1
    finally:
        process.kill()
        process.wait(10)


def words_of(pid: int) -> list[bytes]:
    """Return a process' command line; none when it has ended meanwhile, as the tools of a starting playbook do."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def test_a_lost_run_is_cleaned_up_where_it_lived_and_tried_again(service: subprocess.Popen[bytes]) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 2}))
    drive(attempt_id, until=lambda _: starts_of(attempt_id) == 1)
    hosts = [pid for pid in marker.carriers(attempt_id) if os.fsencode(runner.HOST_PROGRAM) in words_of(pid)]
    for pid in hosts:
        os.kill(pid, signal.SIGKILL)
    left = set(marker.carriers(attempt_id))
    assert left  # ansible-playbook lives on
    assert drive(attempt_id, until=ended).status == "finished"
    assert (steps_of(attempt_id)[0].try_no, starts_of(attempt_id), left & set(marker.carriers(attempt_id))) == (2, 2, set())


def test_it_ends_when_its_last_playbook_has_ended_and_not_before(service: subprocess.Popen[bytes]) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 2}))
    drive(attempt_id, until=lambda _: starts_of(attempt_id) == 1)
    service.terminate()
    assert drive(attempt_id, until=ended).status == "finished"
    assert service.wait(60) == 0
    assert starts_of(attempt_id) == 1


def test_it_does_nothing_outside_of_the_runs_and_nothing_without_a_lock(service: subprocess.Popen[bytes], tmp_path: Path) -> None:
    for folder in (tmp_path, settings().runs_dir / ".." / "x"):
        with pytest.raises(OSError, match="no request of ours"):
            runner._ask({"op": "spawn", "folder": str(folder), "environment": {marker.VARIABLE: "x"}}, [1])
    with pytest.raises(OSError, match="no request of ours"):
        runner._ask({"op": "spawn", "folder": str(settings().runs_dir / "a"), "environment": {}})
    with socket.socket(socket.AF_UNIX) as wire:  # half a request
        wire.connect(settings().runner_socket)
        wire.sendall(b'{"op": "spa')
        wire.shutdown(socket.SHUT_WR)
        assert b'"ok": false' in wire.recv(4096)
    assert runner.answers()


def test_a_runner_that_is_told_to_end_finishes_its_playbooks_and_begins_no_other(service: subprocess.Popen[bytes]) -> None:
    first, late = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 3})), make_attempt(playbook_step())
    drive(first, until=lambda _: starts_of(first) == 1)
    drive(late, until=lambda a: a.status == "running")
    service.terminate()
    wait_for(lambda: not runner_takes(late), said="the runner knows that it is to end")
    attempt = attempt_of(late)
    assert (attempt.status, attempt.problem, starts_of(late), steps_of(late)[0].status) == ("running", None, 0, "pending")
    service.wait(PATIENCE_S)  # at the end of the first playbook, however many are asked for meanwhile
    assert drive(first, until=ended).status == "finished"
    again = start_runner()
    try:
        assert drive(late, until=ended).status == "finished"
    finally:
        again.kill()
        again.wait(10)


def runner_takes(attempt_id: str) -> bool:
    """Ask the runner to begin a playbook; tell whether it did."""
    folder = settings().runs_dir / attempt_id / "probe-1"
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        runner.spawn([folder], [lock], {marker.VARIABLE: attempt_id})
    except runner.RunnerAway:
        return False
    finally:
        os.close(lock)
    return True
