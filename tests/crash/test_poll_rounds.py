"""Rounds of polls whose host, whose worker or one of whose attempts is ended midway: each loses one poll at most, and asks again by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import select

from app.attempts.models import Attempt, StepEvent
from app.engine import events, marker, runner, runs
from app.engine.advance import advance
from app.engine.policy import ROUND_MAX
from app.kit.db import database_now, read_session, write_session
from app.settings import ROOT, settings
from tests.engine_kit import PLAYBOOKS, attempt_of, steps_of, wait_for
from tests.integration.test_poll_rounds import change, due

# The engine's own host with a stand-in for ansible-runner, which starts a process of its own and does not come to an end while a file says so.
HOST = """
import json, subprocess, sys, time, types, uuid
from pathlib import Path
sys.path.insert(0, {root!r})
from app.engine import host
HERE = Path({here!r})

def run(*, inventory, event_handler, **_):
    names = list(json.loads(Path(inventory).read_text())["all"]["hosts"])
    def emit(kind, **data):
        event_handler({{"uuid": str(uuid.uuid4()), "counter": 0, "event": kind, "created": "", "stdout": "", "event_data": data}})
    emit("playbook_on_start")
    with (HERE / "diary").open("a") as diary:
        diary.write(str(len(names)) + chr(10))
    for name in names:
        emit("runner_on_ok", host=name, task="reply", res={{"stdout": json.dumps({{"state": "running", "chunks": {{}}}})}})
    module = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (HERE / "begun").touch()
    while len(names) > 1 and (HERE / "hangs").exists():
        time.sleep(0.02)
    module.kill(), module.wait()
    emit("playbook_on_stats", ok=dict.fromkeys(names, 1), failures={{}}, dark={{}})
    return types.SimpleNamespace(status="successful", rc=0)

sys.modules["ansible_runner"] = types.SimpleNamespace(run=run)
if __name__ == "__main__":
    host.detach()
    host.main(host.told_of(sys.argv[1:]))
"""

DIES = """
import os, signal, sys
from pathlib import Path
from app.engine import runner, runs
from app.engine.advance import advance
launch, runner.HOST_PROGRAM = runs.launch, Path(sys.argv[2])
def dying(boarded):
    if sys.argv[3] == "after":
        launch(boarded)
    os.kill(os.getpid(), signal.SIGKILL)
runs.launch = dying
advance(sys.argv[1], None)
"""


@pytest.fixture
def here(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of the stand-in, whose rounds hang."""
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    settings.cache_clear()
    program = tmp_path / "host.py"
    program.write_text(HOST.format(root=str(ROOT), here=str(tmp_path)))
    monkeypatch.setattr(runner, "HOST_PROGRAM", program)
    (tmp_path / "hangs").touch()
    return tmp_path


def playbooks(here: Path) -> list[int]:
    """Return of how many hosts each playbook was that began."""
    return [int(line) for line in (here / "diary").read_text().split()] if (here / "diary").exists() else []


def come_home(attempt_id: str) -> None:
    """Move an attempt until its poll has come home."""

    def home() -> bool:
        advance(attempt_id, None)
        return steps_of(attempt_id)[0].status == "running"

    wait_for(home, said=f"the poll of {attempt_id} comes home")


def stored(attempt_id: str, run: str) -> set[str]:
    with read_session() as s:
        return set(s.scalars(select(StepEvent.uuid).where(StepEvent.attempt_id == attempt_id, StepEvent.run == run)))


def written(attempt_id: str, run: str) -> set[str]:
    return {event["uuid"] for event in events.read_new(runs.folder_of(attempt_id, "soak", run) / "events.jsonl", 0)[0]}


def is_host(pid: int, here: Path) -> bool:
    try:
        return os.fsencode(here / "host.py") in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def test_a_round_that_is_killed_is_one_poll_lost_to_each_which_it_makes_again_by_itself(here: Path) -> None:
    ids = due(3)
    advance(ids[0], None)
    wait_for((here / "begun").exists)
    family = set(marker.carriers(ids[1]))
    assert all(set(marker.carriers(attempt_id)) == family for attempt_id in ids)
    for pid in family:
        if is_host(pid, here):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(runs.look(runs.folder_of(attempt_id, "soak", "poll-1")).look is runs.Look.LOST for attempt_id in ids))
    assert set(marker.carriers(ids[1]))  # its module lives on
    for attempt_id in ids:
        come_home(attempt_id)
    assert playbooks(here) == [3, 1, 1, 1]
    assert not family & set(marker.carriers(ids[1]))
    for attempt_id in ids:
        step = steps_of(attempt_id)[0]
        assert (attempt_of(attempt_id).status, (step.result or {})["lost"], step.try_no) == ("running", 0, 2)
        assert stored(attempt_id, "poll-1") == written(attempt_id, "poll-1")
        assert len(written(attempt_id, "poll-1")) == 2  # the play's beginning, and what its own host said
        assert stored(attempt_id, "poll-2") == written(attempt_id, "poll-2")
    (here / "hangs").unlink()
    for attempt_id in ids:
        change(attempt_id)
    advance(ids[1], None)
    for attempt_id in ids:
        come_home(attempt_id)
    assert playbooks(here) == [3, 1, 1, 1, 3]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_is_killed_around_the_launch_leaves_one_poll_of_each_target(here: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = due(3)
    before = [attempt_of(attempt_id).generation for attempt_id in ids]
    (here / "hangs").unlink()
    done = subprocess.run([sys.executable, "-c", DIES, ids[0], str(here / "host.py"), moment], cwd=ROOT, timeout=60, check=False)
    assert done.returncode == -9
    assert [attempt_of(attempt_id).generation for attempt_id in ids] == before  # nothing was committed
    assert not any(advance(attempt_id, None) for attempt_id in ids)  # its leases protect what it may have begun
    with write_session() as s:
        for attempt_id in ids:
            s.get_one(Attempt, attempt_id).lease_until = None
    for attempt_id in ids:
        come_home(attempt_id)
    assert playbooks(here) == [3]
    for attempt_id in ids:
        assert (steps_of(attempt_id)[0].try_no, stored(attempt_id, "poll-1")) == (1, written(attempt_id, "poll-1"))
        assert len(written(attempt_id, "poll-1")) == 3


def test_a_cancel_of_one_waits_for_no_round_and_costs_the_others_one_poll(here: Path) -> None:
    ids = due(2)
    advance(ids[0], None)
    wait_for((here / "begun").exists)
    with write_session() as s:
        s.get_one(Attempt, ids[1]).cancel_requested_at = database_now(s)
    assert advance(ids[1], None)
    assert steps_of(ids[1])[0].status == "stopping"
    assert marker.carriers(ids[0]) == []  # the round hangs no more
    assert not (runs.folder_of(ids[1], "soak", "poll-1") / "private").exists()
    assert stored(ids[1], "poll-1") == written(ids[1], "poll-1")
    come_home(ids[0])
    assert not (runs.folder_of(ids[0], "soak", "poll-1") / "private").exists()  # the round's inventory knew how to reach both
    assert (attempt_of(ids[0]).status, playbooks(here).count(2)) == ("running", 1)
    wait_for(lambda: not marker.carriers(ids[1]) or marker.end_all(ids[1]))


def test_a_runner_of_its_own_is_given_all_locks_of_a_round(here: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = due(3)
    (here / "hangs").unlink()
    monkeypatch.setattr(settings(), "runner_socket", str(state / "run.sock"))
    service = runner.Runner(state / "run.sock")
    thread = threading.Thread(target=service.serve)
    thread.start()
    try:
        wait_for(runner.answers)
        assert runner.room() == ROUND_MAX
        advance(ids[0], None)
        for attempt_id in ids:
            come_home(attempt_id)
    finally:
        service.over.set()
        thread.join(60)
    assert playbooks(here) == [3]


def test_a_runner_of_an_earlier_version_is_given_one_poll_at_a_time(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "runner_socket", "/nowhere")
    monkeypatch.setattr(runner, "_ask", lambda request, fds=(): {"ok": True, "room": True})
    assert runner.room() == 1
