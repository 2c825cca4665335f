"""The chaos lane strikes inside a move, exactly where it says: the process dies there, once, and a person's cancel comes before the row is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.attempts.models import Attempt
from app.kit.db import database_now, read_session, write_session
from app.settings import ROOT
from lanes.chaos import boundaries
from tests.engine_kit import PLAYBOOKS, attempt_of, make_attempt, playbook_step, steps_of

WORKER = "import sys\nfrom lanes.chaos import boundaries\nboundaries.watch()\nfrom app.engine.advance import advance\nadvance(sys.argv[1], None)\n"


def move(attempt_id: str) -> int:
    """Move an attempt once, in a process of its own as a worker's child; return how that ended."""
    environment = {**os.environ, "QUADGATE_PLAYBOOK_DIR": str(PLAYBOOKS)}
    return subprocess.run([sys.executable, "-c", WORKER, attempt_id], cwd=ROOT, env=environment, check=False, stderr=subprocess.DEVNULL).returncode


@pytest.fixture
def flags(state: Path) -> Path:
    folder = state / "chaos"
    folder.mkdir()
    return folder


def test_a_worker_dies_at_the_boundary_that_is_armed_and_only_once(flags: Path) -> None:
    attempt_id = make_attempt(playbook_step())
    assert boundaries.arm(flags, "claimed")
    assert not boundaries.arm(flags, "claimed")
    assert move(attempt_id) == -signal.SIGKILL
    assert attempt_of(attempt_id).status == "queued"
    with read_session() as s:
        assert attempt_of(attempt_id).lease_until > database_now(s)  # it died with the lease
    assert boundaries.arm(flags, "committed")
    other = make_attempt(playbook_step())
    assert move(other) == -signal.SIGKILL
    assert attempt_of(other).status == "running"  # what it committed stands
    assert [(hit.what, hit.attempt) for hit in boundaries.hits(flags, 0)] == [("claimed", attempt_id), ("committed", other)]
    assert boundaries.hits(flags, 2) == []


def test_a_cancel_comes_at_the_kind_and_status_of_step_that_was_asked_for(flags: Path) -> None:
    attempt_id = make_attempt(playbook_step())
    boundaries.arm_cancel(flags, attempt_id, "playbook", "pending")
    assert move(attempt_id) == 0  # queued: not there yet
    assert attempt_of(attempt_id).cancel_requested_at is None
    assert move(attempt_id) == 0
    assert (attempt_of(attempt_id).status, steps_of(attempt_id)[0].status) == ("canceled", "canceled")
    assert [hit.what for hit in boundaries.hits(flags, 0)] == ["cancel playbook/pending", "gone"]


def test_a_cancel_that_was_refused_is_noted_as_that(flags: Path) -> None:
    attempt_id = make_attempt(playbook_step())
    boundaries.ask(flags, attempt_id, "playbook/pending")
    with write_session() as s:
        s.get_one(Attempt, attempt_id).verdict = "pass"
    boundaries.ask(flags, attempt_id, "report/pending")
    for number, what in enumerate(["cancel playbook/pending", "refused report/pending"]):
        assert boundaries.hits(flags, number)[0].what == what
