"""Much to do at once: nobody waits for all of it, nothing is sent twice, and what takes long leaves room for what does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import update

from app.attempts import conclude
from app.attempts.models import Attempt, Step
from app.attempts.usecases import request_cancel
from app.engagements.models import Engagement
from app.engine import hints, nodes, runs, slots, tick
from app.engine.advance import advance, advance_heavy
from app.engine.models import Node
from app.engine.policy import BEAT_S, HINT_AGAIN_S, HINT_LOST_S, QUEUED_MAX
from app.evidence import judgement
from app.kit.clock import now
from app.kit.db import database_now, read_session, write_session
from app.settings import settings
from gates.steps import judge_step, report_step
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, playbook_step, steps_of, wait_for
from tests.people import Cast

HERE = "here"


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    monkeypatch.setattr(settings(), "node", HERE)
    nodes.beat(HERE)


class Broker:
    """What is sent, and how much of it waits."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []  # task, attempt, queue
        self.depth = 1

    def publish(self, task: str, args: list[Any], *, queue: str, expires_s: float | None = None) -> bool:
        if task.startswith("advance"):
            self.sent.append((task, str(args[0]), queue))
        return True

    def taken(self) -> list[str]:
        found, self.sent = [attempt for _, attempt, _ in self.sent], []
        return found

    def obey(self) -> None:
        """Do what was sent, as a worker does."""
        told, self.sent = self.sent, []
        for task, attempt_id, _ in told:
            {"advance": advance, "advance_heavy": advance_heavy}[task](attempt_id, None)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    found = Broker()
    monkeypatch.setattr(hints, "publish", found.publish)
    monkeypatch.setattr(hints, "waiting", lambda queues: dict.fromkeys(queues, found.depth))
    return found


def hinted(ago_s: float, *attempts: str) -> None:
    """Let hints have been sent so long ago."""
    with write_session() as s:
        then = database_now(s) - timedelta(seconds=ago_s)
        s.execute(update(Attempt).where(Attempt.id.in_(attempts)).values(last_enqueued_at=then))


def done(*attempts: str) -> None:
    """Let attempts have been moved, and have nothing to do for now."""
    with write_session() as s:
        s.execute(update(Attempt).where(Attempt.id.in_(attempts)).values(next_due_at=None, last_enqueued_at=None))


@pytest.fixture
def crowd() -> list[str]:
    """An engagement with twice as many due attempts as a queue takes."""
    return [make_attempt(playbook_step(), code="CROWD") for _ in range(2 * QUEUED_MAX)]


def test_one_engagement_with_hundreds_of_due_attempts_keeps_another_waiting_for_one_turn(crowd: list[str], broker: Broker) -> None:
    other = make_attempt(playbook_step(), code="OTHER")
    assert tick.tick() == QUEUED_MAX  # the rest waits in the database, where it is in nobody's way
    assert broker.taken()[:2] == [crowd[0], other]


def test_who_comes_when_a_queue_is_full_is_next_when_there_is_room(crowd: list[str], broker: Broker) -> None:
    tick.tick()
    first = broker.taken()
    late = make_attempt(playbook_step(), code="LATE")
    assert (tick.tick(), broker.taken()) == (0, [])  # nothing is sent again that waits, and nothing more fits
    done(*first[:3])
    assert (tick.tick(), broker.taken()) == (3, [crowd[QUEUED_MAX], late, crowd[QUEUED_MAX + 1]])


def test_a_hint_that_waits_is_sent_again_after_a_minute_and_a_lost_one_at_once(broker: Broker) -> None:
    attempt_id = make_attempt(playbook_step())
    tick.tick()
    assert broker.taken() == [attempt_id]
    hinted(HINT_LOST_S + 1, attempt_id)
    tick.tick()
    assert broker.taken() == []  # its queue is long
    broker.depth = 0
    tick.tick()
    assert broker.taken() == [attempt_id]  # its queue is empty, so it is in none
    broker.depth = 1
    hinted(HINT_AGAIN_S + 1, attempt_id)
    tick.tick()
    assert broker.taken() == [attempt_id]


def test_judging_and_printing_wait_in_a_queue_of_their_own(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = make_attempt(judge_step())
    tick.tick()
    assert broker.sent == [("advance_heavy", attempt_id, f"heavy@{HERE}")]
    broker.taken()
    drive(attempt_id, until=lambda a: a.status == "running")
    assert broker.sent[-1] == ("advance_heavy", attempt_id, f"heavy@{HERE}")  # its successor too


def test_a_worker_keeps_one_child_for_work_that_is_short(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, short = make_attempt(judge_step(), code="A"), make_attempt(judge_step(), code="B"), make_attempt(playbook_step(), code="C")
    with slots.heavy() as free:
        assert free
        assert not advance_heavy(second, 0)
        assert attempt_of(second).lease_owner is None  # not even claimed: it costs nothing to come in vain
        assert advance(short, 0)
        assert attempt_of(short).status == "running"
    broker.taken()
    assert advance_heavy(first, 0)
    assert broker.taken() == [first]  # its successor
    done(first)
    broker.depth = 0
    assert not advance_heavy(first, 0)  # a message that comes late does nothing, but hands the place on
    assert broker.taken() == [second]  # which was dropped when there was no room


def measured(*then: Any, **columns: Any) -> str:
    """An attempt whose job is over, and that is at the step after it."""
    attempt_id = make_attempt(job_step(), *then)
    with write_session() as s:
        step = s.get_one(Step, steps_of(attempt_id)[0].id)
        step.status, step.job_id = "done", f"{attempt_id}-run-1"
        s.execute(update(Attempt).where(Attempt.id == attempt_id).values(status="running", step_index=1, **columns))
    return attempt_id


def stopped(attempt_id: str) -> None:
    with write_session() as s:
        s.get_one(Engagement, attempt_of(attempt_id).engagement_id).state = "stopped"


def test_a_cancel_waits_for_no_judgement_of_another(broker: Broker, cast: Cast) -> None:
    attempt_id = measured(judge_step())
    tick.tick()
    assert broker.sent == [("advance_heavy", attempt_id, f"heavy@{HERE}")]  # and waits there while the cancel is asked for
    with slots.heavy() as free:
        assert free
        with write_session() as s:
            request_cancel(s, attempt_id=attempt_id, reason="the array is taken away", actor=cast.li_wei)
        broker.taken()
        tick.tick()
        assert broker.sent == [("advance", attempt_id, f"steps@{HERE}")]
        wait_for(lambda: (broker.obey(), tick.tick(), attempt_of(attempt_id).status == "canceled")[-1])
    assert runs.folder_of(attempt_id, "judge", "stop-1").exists()


@pytest.mark.parametrize("touched", [True, False])
def test_the_order_of_a_stop_loss_waits_for_no_report_of_another_and_prints_none(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, touched: bool
) -> None:
    monkeypatch.setattr("app.reports.usecases.render", lambda *_, **__: pytest.fail("a report was printed where there is no room for one"))
    attempt_id = measured(report_step(), verdict="fail")
    if not touched:
        with write_session() as s:
            s.get_one(Step, steps_of(attempt_id)[0].id).job_id = None
            s.get_one(Step, steps_of(attempt_id)[0].id).status = "pending"
    stopped(attempt_id)
    with slots.heavy() as free:
        assert free
        tick.tick()
        assert broker.sent == [("advance", attempt_id, f"steps@{HERE}")]
        wait_for(lambda: (broker.obey(), "halt" in (steps_of(attempt_id)[1].result or {}) or tick.tick() < 0)[-1])
    assert runs.folder_of(attempt_id, "report", "stop-1").exists() == touched
    assert broker.sent == [("advance_heavy", attempt_id, f"heavy@{HERE}")]  # what is left of the step is printing


def test_a_judgement_that_stops_the_engagement_hints_the_stop_and_not_the_report(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(s: Any, attempt_id: str, _document: Any) -> None:
        s.get_one(Attempt, attempt_id).verdict = "fail"
        s.get_one(Engagement, s.get_one(Attempt, attempt_id).engagement_id).state = "stopped"

    for name in ("prepare", "judged", "keep"):
        monkeypatch.setattr(judgement, name, lambda *_, **__: SimpleNamespace(document={}))
    monkeypatch.setattr(conclude, "conclude", stop)
    attempt_id = measured(judge_step(), report_step())
    assert advance_heavy(attempt_id, None)
    assert broker.sent == [("advance", attempt_id, f"steps@{HERE}")]


def test_more_playbooks_than_a_machine_may_have_wait_for_their_turn_and_a_stop_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "hosts_max", 1)
    slow, other = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 60})), make_attempt(playbook_step())
    drive(slow, until=lambda a: steps_of(a.id)[0].status == "starting")
    drive(other, until=lambda a: a.status == "running")
    assert not advance(other, None)
    assert (steps_of(other)[0].status, attempt_of(other).problem) == ("pending", None)
    assert attempt_of(other).next_due_at > now()
    assert runs.look(runs.folder_of(other, "survey", "run-1")).look is runs.Look.NEVER
    with write_session() as s:
        s.merge(attempt_of(slow)).cancel_requested_at = now()
    assert drive(slow, until=ended).status == "canceled"
    assert drive(other, until=ended).status == "finished"


def test_work_that_is_done_is_a_heartbeat_and_is_written_now_and_then(broker: Broker) -> None:
    attempt_id = make_attempt(playbook_step())

    def aged(seconds: float) -> Callable[[], float]:
        with write_session() as s:
            s.get_one(Node, HERE).heartbeat_at = database_now(s) - timedelta(seconds=seconds)
        with read_session() as s:
            return lambda before=s.get_one(Node, HERE).heartbeat_at: (_heartbeat() - before).total_seconds()

    fresh = aged(BEAT_S / 2)
    assert advance(attempt_id, 0)
    assert fresh() == 0
    old = aged(BEAT_S + 5)
    assert advance(attempt_id, 1)
    assert old() >= BEAT_S
    wait_for(lambda: runs.look(runs.folder_of(attempt_id, "survey", "run-1")).look is runs.Look.DONE)


def _heartbeat() -> Any:
    with read_session() as s:
        return s.get_one(Node, HERE).heartbeat_at
