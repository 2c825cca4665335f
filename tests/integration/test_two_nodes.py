"""Two nodes, one database, no folder in common: what one began, the other goes on with when the first has fallen silent."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.attempts.models import StepEvent
from app.engine import events, marker, nodes, runs
from app.engine.models import Node
from app.engine.policy import NODE_STALE_S
from app.kit.db import database_now, read_session, write_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, drive, ended, make_attempt, playbook_step, steps_of, wait_for


@pytest.fixture
def far(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be the node that will fall silent; its state directory is given."""
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    monkeypatch.setattr(settings(), "node", "far")
    nodes.beat("far")
    return state


@pytest.fixture
def near(far: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second state directory, for the node that takes over."""
    folder = Path(tempfile.mkdtemp(prefix="qg-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_playbook_that_ran_on_the_silent_node_is_lost_and_run_again_with_all_its_events(
    far: Path, near: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 120}))
    try:
        drive(attempt_id, until=lambda _: int((steps_of(attempt_id)[0].result or {}).get("events_at", 0)) > 0)  # some events are stored
        seen = steps_of(attempt_id)[0].result
        with write_session() as s:
            s.get_one(Node, "far").heartbeat_at = database_now(s) - timedelta(seconds=NODE_STALE_S + 1)
        monkeypatch.setattr(settings(), "node", "near")
        monkeypatch.setattr(settings(), "state_dir", near)
        with write_session() as s:
            spec = steps_of(attempt_id)[0]
            s.merge(spec).spec = {**spec.spec, "params": {"seconds": 0}}  # the second time it is quick
        attempt = drive(attempt_id, until=ended)
    finally:
        wait_for(lambda: not marker.carriers(attempt_id) or marker.end_all(attempt_id) is not None)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, attempt.problem, attempt.node, attempt.fence) == ("finished", None, "near", 1)
    assert (step.result["run"], step.result["lost"], step.try_no) == ("run-2", 1, 2)
    assert runs.look(runs.folder_of(attempt_id, "survey", "run-1")).look is runs.Look.LOST
    with read_session() as s:
        assert events.stored(s, step.id, "run-1") > 0  # what the first had told stays
        assert s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.run == "run-2")) > 0
    assert seen["events_at"] > 0
