"""A clock that is set back by hours makes nothing wait for hours; a correction of seconds moves nothing."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.attempts.models import Attempt, Step
from app.engine import hints, nodes, tick
from app.engine.advance import advance
from app.engine.models import Canary, Node
from app.kit.db import database_now, read_session, write_session
from tests.engine_kit import attempt_of, job_step, make_attempt, steps_of


@pytest.mark.parametrize(("back", "moved"), [(timedelta(hours=2), True), (timedelta(seconds=20), False)])
def test_what_was_due_soon_by_the_clock_of_before_is_due_soon_by_that_of_now(
    state: Path, monkeypatch: pytest.MonkeyPatch, back: timedelta, moved: bool
) -> None:
    monkeypatch.setattr(hints, "publish", lambda *_args, **_kw: True)
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        due = database_now(s) + back + timedelta(seconds=60)
        s.merge(Canary(name=nodes.CANARY, sent_at=database_now(s) + back))
        attempt, step = s.get_one(Attempt, attempt_id), s.get_one(Step, steps_of(attempt_id)[0].id)
        attempt.status, attempt.next_due_at = "running", due
        step.status, step.result, step.expected_end_at = "running", {"ask_at": due.isoformat()}, due
    for _ in range(2):  # once is enough
        tick.tick()
    step = steps_of(attempt_id)[0]
    for at in (attempt_of(attempt_id).next_due_at, datetime.fromisoformat((step.result or {})["ask_at"]), step.expected_end_at):
        assert at is not None
        assert (due - at > timedelta(hours=1)) if moved else at == due


def test_a_node_that_died_before_the_clock_was_set_back_is_not_alive_for_hours(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "publish", lambda *_args, **_kw: True)
    nodes.beat("gone")
    with write_session() as s:
        s.merge(Canary(name=nodes.CANARY, sent_at=database_now(s) + timedelta(hours=2)))
        s.merge(Node(name="gone", heartbeat_at=database_now(s) + timedelta(hours=2)))
    tick.tick()
    with read_session() as s:
        assert s.get_one(Node, "gone").heartbeat_at <= database_now(s)


def test_a_job_whose_time_was_set_by_a_move_that_spanned_the_way_back_is_asked_after_the_time_that_it_was_given(state: Path) -> None:
    """`set_back.move_due` has run by then, and the canary tells nothing any more."""
    attempt_id = make_attempt(job_step())
    with write_session() as s:
        now = database_now(s)
        attempt, step = s.get_one(Attempt, attempt_id), s.get_one(Step, steps_of(attempt_id)[0].id)
        attempt.status, attempt.next_due_at = "running", now
        step.status, step.job_id = "running", f"{attempt_id}-run-1"
        step.result = {"ask_at": (now + timedelta(hours=2)).isoformat(), "ask_s": 5.0, "expected_s": 60.0, "hosts": ["gpu01"]}
    assert advance(attempt_id, attempt_of(attempt_id).generation)
    with write_session() as s:
        soon = database_now(s) + timedelta(seconds=10)
    due = attempt_of(attempt_id).next_due_at
    assert due is not None
    assert due < soon
    assert datetime.fromisoformat((steps_of(attempt_id)[0].result or {})["ask_at"]) < soon
