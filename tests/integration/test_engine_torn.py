"""A record that cannot be read, a process that does not end, a database that is away: the run is ended before another begins, and a stop goes out."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from app.accounts.actor import SYSTEM
from app.attempts.models import StepEvent
from app.attempts.usecases import retry
from app.engine import events, marker, runs
from app.engine.advance import advance
from app.engine.shutdown import cancel_running
from app.engine.steps import cancel
from app.kit.db import read_session, write_session
from app.settings import settings
from app.up.ending import STOPPED
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, playbook_step, steps_of, wait_for


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


@pytest.fixture
def working() -> Iterator[str]:
    """An attempt whose playbook is at work, and whose record has a torn line that nobody has read yet."""
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 90}))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "starting")
    said = first(attempt_id) / "events.jsonl"
    wait_for(lambda: any(event["event"] == "runner_on_start" and event["data"].get("task") == "work" for event in events.read_new(said, 0)[0]))
    with said.open("ab") as file:
        file.write(b'{"uuid": "torn", "coun{"uuid": "next"}\n')
    yield attempt_id
    marker.end_all(attempt_id)


def first(attempt_id: str) -> Path:
    return runs.folder_of(attempt_id, "survey", "run-1")


def stop_of(attempt_id: str, step: str) -> runs.Look:
    return runs.look(runs.folder_of(attempt_id, step, "stop-1")).look


def test_a_run_that_lives_on_after_its_step_failed_is_ended_before_a_retry_begins_another(working: str) -> None:
    attempt = drive(working, until=ended)
    assert (attempt.status, (attempt.problem or {}).get("code")) == ("error", "events_torn")
    assert "run-1" in (attempt.problem or {})["zh-CN"]
    assert runs.look(first(working)).look is runs.Look.ALIVE
    with write_session() as s:
        step = s.merge(steps_of(working)[0])
        step.spec = {**step.spec, "params": {"seconds": 0}}  # the second time it is quick
        retry(s, attempt_id=working, actor=SYSTEM)
    drive(working, until=lambda _: (steps_of(working)[0].result or {}).get("run") == "run-2")
    assert runs.look(first(working)).look is runs.Look.LOST  # before anything else was begun
    assert drive(working, until=ended).status == "finished"
    with read_session() as s:
        assert s.scalar(select(StepEvent.uuid).where(StepEvent.attempt_id == working, StepEvent.run == "run-1").limit(1))


def test_a_torn_record_keeps_no_cancel_from_telling_the_targets(working: str) -> None:
    cancel_running(STOPPED)
    attempt = drive(working, until=ended)
    assert (attempt.status, attempt.problem) == ("canceled", None)
    assert stop_of(working, "survey") is runs.Look.DONE
    with read_session() as s:  # what was said before the torn line is kept
        assert s.scalar(select(StepEvent.uuid).where(StepEvent.attempt_id == working, StepEvent.run == "run-1").limit(1))


def test_a_process_that_does_not_end_keeps_no_cancel_from_telling_the_targets_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = running_job()

    def hangs(_: str) -> None:
        raise TimeoutError("processes [4711] do not end")

    monkeypatch.setattr(cancel.runs, "clean_all", hangs)
    cancel_running(STOPPED)
    attempt = drive(attempt_id, until=ended)
    assert stop_of(attempt_id, "run-1") is runs.Look.DONE
    assert (attempt.status, (attempt.problem or {}).get("code")) == ("canceled", "not_stopped")
    assert "On the machine of Quadgate itself processes of the attempt did not end (processes [4711] do not end)" in (attempt.problem or {})["en"]
    assert "Quadgate 所在机器上" in (attempt.problem or {})["zh-CN"]


def test_a_stop_that_cannot_be_ordered_keeps_what_the_playbook_had_said(working: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "no space left for the runs")

    monkeypatch.setattr(cancel.drive, "begin", no_room)
    cancel_running(STOPPED)
    attempt = drive(working, until=ended)
    assert (attempt.status, (attempt.problem or {}).get("code")) == ("canceled", "not_stopped")
    with read_session() as s:
        assert s.scalar(select(StepEvent.uuid).where(StepEvent.attempt_id == working, StepEvent.run == "run-1").limit(1))


def running_job() -> str:
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        row, step = s.merge(attempt_of(attempt_id)), s.merge(steps_of(attempt_id)[0])
        row.status, step.status, step.job_id = "running", "running", f"{attempt_id}-run-1"
    return attempt_id


def test_a_database_that_is_away_for_a_moment_is_no_stop_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id, real, away = running_job(), cancel.drive.follow, [True]

    def follow(ctx: Any, order: Any) -> Any:
        if away:
            raise OperationalError("SELECT", {}, Exception("the database is away"))
        return real(ctx, order)

    monkeypatch.setattr(cancel.drive, "follow", follow)
    cancel_running(STOPPED)
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "stopping")
    assert not advance(attempt_id, None)
    assert attempt_of(attempt_id).status == "running"
    away.clear()
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem) == ("canceled", None)
