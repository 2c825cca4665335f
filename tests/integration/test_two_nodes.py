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
from app.engine import due, events, marker, nodes, runs
from app.engine.claim import claim
from app.engine.models import Node
from app.engine.policy import CANCEL_STALE_S, NODE_STALE_S, SECOND_LOOK_S
from app.engine.tick import tick
from app.kit.db import database_now, read_session, write_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, fall_silent, job_step, make_attempt, playbook_step, steps_of, wait_for


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
        fall_silent("far", NODE_STALE_S + 1)
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


def test_a_clock_that_jumps_forward_makes_nobody_a_silent_node_before_a_second_look(far: Path) -> None:
    """All heartbeats are old at once then. Whoever lives has beaten again when somebody looks a second time."""
    nodes.beat("near")
    attempt_id = make_attempt(playbook_step())
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).node = "far"
        for row in s.scalars(select(Node)):
            row.heartbeat_at = database_now(s) - timedelta(seconds=650)
    tick()  # the first look
    with read_session() as s:
        assert all(row.silent_since is not None for row in s.scalars(select(Node)))
        assert nodes.stale(s, database_now(s)) == []
    assert claim(attempt_id, None, owner="b", node="near") is None
    later = timedelta(seconds=SECOND_LOOK_S + 1)
    with read_session() as s:
        assert nodes.stale(s, database_now(s) + later) == ["far", "near"]  # nobody has beaten since
    nodes.beat("near")
    with write_session() as s:
        nodes.worked(s, "far")
    with read_session() as s:
        assert nodes.stale(s, database_now(s) + later) == []


def test_a_cancel_waits_for_no_silent_node_and_says_what_may_go_on_there(far: Path) -> None:
    nodes.beat("near")
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        row, step = s.merge(attempt_of(attempt_id)), s.merge(steps_of(attempt_id)[0])
        row.status, row.node, row.next_due_at = "running", "far", database_now(s)
        step.status, step.job_id, step.result = "starting", f"{attempt_id}-run-1", {"run": "start-1", "runs": {"start": 1}}
    fall_silent("far", CANCEL_STALE_S + SECOND_LOOK_S)
    assert claim(attempt_id, None, owner="b", node="near") is None  # it waits for its own node
    settings().node = "near"
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).cancel_requested_at = database_now(s)
        assert [row.node for row in due.look(s).rows if row.attempt_id == attempt_id] == ["near"]
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.node, (attempt.problem or {}).get("code")) == ("canceled", "near", "not_stopped")
    assert "The node far of Quadgate" in attempt.problem["en"]
    assert "Quadgate 节点 far 无应答" in attempt.problem["zh-CN"]
    assert runs.look(runs.folder_of(attempt_id, "run-1", "stop-1")).look is runs.Look.DONE
