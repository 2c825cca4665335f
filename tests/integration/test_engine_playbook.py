"""One playbook step, by a real ansible-playbook in a real detached host process."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.attempts.models import StepEvent, Transition
from app.audit import chain
from app.engine import marker, runs
from app.kit.db import read_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step, steps_of, wait_for


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


def test_it_runs_a_playbook_and_stores_every_event_that_the_runner_counted() -> None:
    attempt_id = make_attempt(playbook_step())
    attempt = drive(attempt_id, until=ended)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, attempt.problem, step.status) == ("finished", None, "done")
    folder = runs.folder_of(attempt_id, "survey", "run-1")
    result = runs.look(folder).result
    with read_session() as s:
        stored = s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.step_id == step.id))
        path = [
            (t.from_status, t.event, t.to_status)
            for t in s.scalars(select(Transition).where(Transition.attempt_id == attempt_id).order_by(Transition.generation))
        ]
        assert chain.verify(s).ok
    assert stored == result["events"] > 5
    assert path == [("queued", "start", "running"), ("running", "finish", "finished")]
    assert result["replies"]["gpu01"]["state"] == "done"
    assert (folder.parent / "starts").read_text().split() == [attempt_id]


def test_nothing_secret_and_no_process_is_left_after_a_run() -> None:
    attempt_id = make_attempt(playbook_step())
    drive(attempt_id, until=ended)
    folder = runs.folder_of(attempt_id, "survey", "run-1")
    wait_for(lambda: not marker.carriers(attempt_id), 10)
    assert sorted(p.name for p in folder.iterdir()) == ["events.jsonl", "host.log", "lock", "result.json", "staging", "started", "used"]
    assert not runs.short_dir(folder).exists()
    assert attempt_of(attempt_id).lease_owner is None
