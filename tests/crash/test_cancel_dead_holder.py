"""A cancel behind a worker that was killed for real: it waits for no lease of the dead, and for that of whoever may live."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

import pytest

from app.accounts.actor import command_line
from app.attempts.usecases import request_cancel
from app.engine import holders, marker, runs
from app.engine.advance import advance
from app.engine.tick import tick
from app.kit.db import write_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, playbook_step, steps_of, wait_for
from tests.engine_kit.holding import holding
from tests.integration.cancel_lab import cancel_lab

LEASE_S = 6000  # no test lasts as long as a third of it: whoever is waited for is waited for in vain


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    monkeypatch.setenv("QUADGATE_LEASE_SECONDS", str(LEASE_S))
    settings.cache_clear()


def at_its_job() -> str:
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 300, "lines": 5}))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    return attempt_id


def ask_to_cancel(attempt_id: str) -> None:
    with write_session() as s:
        request_cancel(s, attempt_id=attempt_id, reason="a person", actor=command_line())


def canceled(attempt_id: str) -> None:
    def over() -> bool:
        tick()
        advance(attempt_id, None)
        return attempt_of(attempt_id).status == "canceled"

    wait_for(over)


def test_the_lease_of_a_killed_worker_holds_up_no_cancel() -> None:
    attempt_id = at_its_job()
    with holding(attempt_id) as process:
        process.kill()
        process.wait()
        ask_to_cancel(attempt_id)
        assert not advance(attempt_id, None)  # the lease alone says nothing of its holder
        canceled(attempt_id)
    assert attempt_of(attempt_id).problem is None
    holders.clear()
    assert [path.name for path in holders.folder().iterdir()] == [holders.owner().partition(":")[0]]  # only ours is left


@pytest.mark.parametrize("living", ["stopped", "on another machine", "of an earlier version"])
def test_a_holder_that_may_live_keeps_its_lease(living: str) -> None:
    attempt_id = at_its_job()
    with holding(attempt_id) as process:
        if living == "stopped":
            process.send_signal(signal.SIGSTOP)
        else:
            process.kill()
            process.wait()
        owner = str(attempt_of(attempt_id).lease_owner)
        if living == "on another machine":  # whose holders lie in a folder that is not here
            (holders.folder() / owner.partition(":")[0]).unlink()
        elif living == "of an earlier version":
            owner = "worker-1:4711:0190"
            with write_session() as s:
                s.merge(attempt_of(attempt_id)).lease_owner = owner
        ask_to_cancel(attempt_id)
        tick()
        assert not advance(attempt_id, None)
        assert attempt_of(attempt_id).lease_owner == owner


def test_without_a_cancel_the_lease_of_the_dead_ends_by_itself() -> None:
    attempt_id = at_its_job()
    with holding(attempt_id) as process:
        process.kill()
        process.wait()
        tick()
        assert attempt_of(attempt_id).lease_owner is not None


def test_a_playbook_that_was_just_being_started_for_the_dead_does_not_outlive_the_cancel() -> None:
    """The order lies with the launcher, or with the runner, when the worker dies: no process carries the mark yet, only the lock is handed over."""
    attempt_id = make_attempt(playbook_step())
    folder = runs.folder_of(attempt_id, "survey", "run-1")
    folder.mkdir(parents=True)
    starts = f"sleep 1; exec env {marker.VARIABLE}={attempt_id} sleep 600"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        launcher = subprocess.Popen(["sh", "-c", starts], pass_fds=[lock.fileno()], start_new_session=True)
    try:
        assert marker.carriers(attempt_id) == []
        runs.clean_all(attempt_id)
        assert launcher.wait(10) == -signal.SIGKILL
        assert runs.look(folder).look is runs.Look.NEVER
    finally:
        launcher.kill()
        launcher.wait()


@pytest.mark.sshd
def test_a_host_that_says_nothing_is_named_and_the_other_is_stopped_behind_a_killed_worker() -> None:
    with cancel_lab() as lab, holding(lab.attempt_id) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        ask_to_cancel(lab.attempt_id)
        canceled(lab.attempt_id)
        attempt = attempt_of(lab.attempt_id)
        assert ended(attempt)
        assert "gpu02" in str((attempt.problem or {}).get("en"))
        assert "gpu01" not in str((attempt.problem or {}).get("en"))
        assert marker.state(lab.left.pid) in ("Z", "")
