"""A playbook whose starter died before the row could say so is adopted, whatever one would order now; a cancel keeps what it said."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from app.attempts.models import Step, StepEvent
from app.engine import drive, events, runs
from app.engine.context import load
from app.engine.shutdown import cancel_running
from app.engine.steps import job as job_module
from app.kit.db import database_now, read_session, write_session
from app.settings import settings
from app.up.ending import STOPPED
from tests.engine_kit import PLAYBOOKS, job_step, make_attempt, steps_of, wait_for
from tests.engine_kit import drive as move
from tests.engine_kit import ended as over


@pytest.fixture
def orphaned(state: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A soak whose first poll was spawned and never committed; meanwhile its end has come."""
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    attempt_id = make_attempt(job_step(params={"kind": "soak", "seconds": 2, "lines": 4}))
    move(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    ctx = load(attempt_id, owner="gone:1:x", node=settings().node)
    runs.start(drive._run(ctx, job_module._order(ctx, job_module.POLL), "poll-1"))
    wait_for(lambda: runs.look(runs.folder_of(attempt_id, "run-1", "poll-1")).look is runs.Look.DONE)
    with write_session() as s:
        step = s.get_one(Step, steps_of(attempt_id)[0].id)
        step.expected_end_at = database_now(s) - timedelta(seconds=1)
        step.result = {**(step.result or {}), "ask_at": step.expected_end_at.isoformat()}
    return attempt_id


def stored(attempt_id: str, run: str) -> set[str]:
    with read_session() as s:
        return set(s.scalars(select(StepEvent.uuid).where(StepEvent.attempt_id == attempt_id, StepEvent.run == run)))


def written(attempt_id: str, run: str) -> set[str]:
    return {event["uuid"] for event in events.read_new(runs.folder_of(attempt_id, "run-1", run) / "events.jsonl", 0)[0]}


def test_a_poll_that_nobody_could_commit_is_adopted_when_the_end_of_the_soak_has_come(orphaned: str) -> None:
    assert move(orphaned, until=over).status == "finished"
    assert stored(orphaned, "poll-1") == written(orphaned, "poll-1") != set()


def test_a_cancel_keeps_what_a_poll_said_that_nobody_could_commit(orphaned: str) -> None:
    cancel_running(STOPPED)
    assert move(orphaned, until=over).status == "canceled"
    assert stored(orphaned, "poll-1") == written(orphaned, "poll-1") != set()
