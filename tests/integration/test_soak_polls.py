"""What a poll of a soak costs: seeded soaks and the stand-in for a playbook host of `make scale`, moved by the real engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event, func, select

from app.attempts import repository
from app.attempts.models import Sample, Step, StepEvent
from app.engine import policy, runner, runs
from app.engine.advance import advance
from app.engine.steps import journal
from app.kit.db import database_now, engine_for, read_session, write_session
from app.settings import settings
from app.web import stream
from lanes.scale import runner as fake
from lanes.scale import seed
from tests.engine_kit import attempt_of, steps_of
from tests.people import Cast

ROWS = [{"uuid": "", "counter": n, "event": "runner_on_ok", "created": "", "stdout": "ok", "data": {"host": "gpu01", "task": "t"}} for n in range(12)]
SCRIPT = {"events": ROWS, "stats": {"ok": {"gpu01": 2}, "dark": {}}, "reply": {"state": "running"}, "seconds": 3.0, "rate": 4.0}


class Hosts:
    """Playbook hosts that do nothing until they are told to."""

    def __init__(self) -> None:
        self.began, self.script = 0.0, SCRIPT
        self.todo: list[Any] = []

    def later(self, _seconds: float, what: Any) -> None:
        self.todo.append(what)

    def go_on(self) -> None:
        """Let every host come to its end."""
        todo, self.todo = self.todo, []
        for what in todo:
            what()


@pytest.fixture
def hosts(state: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    made = Hosts()
    age = iter(range(60, 6000, 60))
    monkeypatch.setattr(fake, "time", SimpleNamespace(monotonic=lambda: next(age)))
    monkeypatch.setattr(runner, "room", lambda: 1)
    monkeypatch.setattr(runner, "spawn", lambda folders, locks, _: fake.Host(made, folders[0], fake.os.dup(locks[0])).begin())
    monkeypatch.setattr(fake.nudge, "push", lambda *_: None)
    return made


@pytest.fixture
def commits(state: Path) -> Iterator[list[str]]:
    """Collect the transactions that wrote."""
    found: list[str] = []
    engine, wrote = engine_for(settings().database_url), set()

    def statement(connection: Any, _cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            wrote.add(connection)

    def committed(connection: Any) -> None:
        if connection in wrote:
            found.append("write")
        wrote.discard(connection)

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", committed)
    yield found
    event.remove(engine, "before_cursor_execute", statement)
    event.remove(engine, "commit", committed)


def let_it_be_due(attempt_id: str) -> None:
    with write_session() as s:
        step = s.scalars(select(Step).where(Step.attempt_id == attempt_id, Step.position == 0)).one()
        step.result = {**(step.result or {}), "ask_at": (database_now(s) - timedelta(seconds=1)).isoformat()}


def poll(attempt_id: str, hosts: Hosts) -> None:
    """Ask a soak once, as the tick and the host's nudge do."""
    let_it_be_due(attempt_id)
    advance(attempt_id, None)
    hosts.go_on()
    advance(attempt_id, None)


def test_a_poll_takes_four_writes_two_to_ask_and_two_to_take_the_answer(hosts: Hosts, commits: list[str]) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    let_it_be_due(attempt_id)
    commits.clear()
    advance(attempt_id, None)
    assert steps_of(attempt_id)[0].status == "polling"
    hosts.go_on()
    advance(attempt_id, None)
    step = steps_of(attempt_id)[0]
    assert (step.status, len(commits)) == ("running", 4)
    with read_session() as s:
        stored = s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.attempt_id == attempt_id))
        records = list(s.scalars(select(Sample.seq).where(Sample.attempt_id == attempt_id, Sample.stream == "records").order_by(Sample.seq)))
    assert stored == len(ROWS)
    assert (len(records), records[0], records[-1]) == (policy.POLL_LINES_MAX, 0, 239)  # the page needs no more; the evidence has all
    assert {later - earlier for earlier, later in pairwise(records)} == {4, 5}


def test_a_poll_whose_nudge_was_lost_is_looked_at_when_its_time_is_over_and_not_every_second(hosts: Hosts) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    let_it_be_due(attempt_id)
    advance(attempt_id, None)
    due = attempt_of(attempt_id).next_due_at
    with read_session() as s:
        assert due is not None
        assert policy.POLL_WATCH_S - 5 < (due - database_now(s)).total_seconds() <= policy.POLL_WATCH_S


def test_a_poll_that_lost_an_event_is_refused_and_what_it_brought_is_stored_all_the_same(hosts: Hosts) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    let_it_be_due(attempt_id)
    advance(attempt_id, None)
    hosts.go_on()
    result = runs.folder_of(attempt_id, "soak", "poll-1") / "result.json"
    result.write_text(json.dumps({**json.loads(result.read_text()), "events": len(ROWS) + 1}))
    advance(attempt_id, None)
    attempt = attempt_of(attempt_id)
    assert (attempt.status, (attempt.problem or {}).get("code")) == ("error", "events_incomplete")
    with read_session() as s:
        assert s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.attempt_id == attempt_id)) == len(ROWS)


@pytest.mark.parametrize("over", [False, True], ids=["polled", "collected"])
def test_a_controller_that_was_replaced_collects_and_judges_nothing_and_says_who_goes_on(hosts: Hosts, over: bool) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    if over:  # its evidence is asked for next
        with write_session() as s:
            s.get_one(Step, steps_of(attempt_id)[0].id).expected_end_at = database_now(s)
    hosts.script = {**SCRIPT, "reply": {"state": "taken_over", "why": "Attempt a was taken over here with fencing number 7; this order carries 1."}}
    poll(attempt_id, hosts)
    advance(attempt_id, None)
    attempt = attempt_of(attempt_id)
    problem = attempt.problem or {}
    assert (attempt.status, problem.get("code"), attempt.verdict, steps_of(attempt_id)[0].status) == ("error", "taken_over", None, "failed")
    assert "fencing number 7; this order carries 1)" in problem["en"]
    assert "接管" in problem["zh-CN"]


def test_where_a_poll_cannot_be_decided_its_events_are_stored_before_anybody_hears_of_it(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    let_it_be_due(attempt_id)
    advance(attempt_id, None)
    hosts.go_on()

    def broken(*_: Any) -> Any:
        raise ValueError("no number")

    monkeypatch.setattr(journal, "chunks", broken)
    advance(attempt_id, None)
    assert attempt_of(attempt_id).status == "running"
    advance(attempt_id, None)
    assert attempt_of(attempt_id).status == "error"
    with read_session() as s:
        assert s.scalar(select(func.count()).select_from(StepEvent).where(StepEvent.attempt_id == attempt_id)) == len(ROWS)


def test_the_files_of_a_poll_go_once_two_newer_ones_were_read(hosts: Hosts) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    for _ in range(5):
        poll(attempt_id, hosts)
    assert (policy.POLLS_KEPT, runs.used(attempt_id, "soak", "poll")) == (2, [3, 4, 5])
    with write_session() as s:  # a retry that forgot everything begins no run under a name that was used
        step = s.scalars(select(Step).where(Step.attempt_id == attempt_id, Step.position == 0)).one()
        step.result = {**(step.result or {}), "runs": {}}
    poll(attempt_id, hosts)
    assert (steps_of(attempt_id)[0].result or {})["runs"]["poll"] == 6
    with read_session() as s:
        names = set(s.scalars(select(StepEvent.run).where(StepEvent.attempt_id == attempt_id)))
    assert names == {f"poll-{n}" for n in range(1, 7)}


def test_a_million_samples_are_counted_by_the_ends_of_their_numbers(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    poll(attempt_id, hosts)
    poll(attempt_id, hosts)
    with read_session() as s:
        counted = repository.counts(s, attempt_id)
    monkeypatch.setattr(repository, "MANY_SAMPLES", 10)
    with read_session() as s:
        assert repository.counts(s, attempt_id) == counted == (2 * len(ROWS), 480 + 12)
        assert all(repository.newest_ids(s, attempt_id))


def test_a_live_page_reads_an_attempt_again_only_when_something_of_it_changed(hosts: Hosts, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    [attempt_id] = seed.soaks(1, settings().node)
    read, views = stream.attempts.attempt_view, []
    monkeypatch.setattr(stream.attempts, "attempt_view", lambda *a, **k: views.append(1) or read(*a, **k))

    def look(before: stream.Batch | None, at: stream.Position) -> stream.Batch:
        batch = stream.read_batch(attempt_id, lambda _: cast.li_wei, at, before)
        assert batch is not None
        stream._of_batch(batch, at, "", "en")
        return batch

    at = stream.Position()
    batch = look(None, at)
    assert (batch.attempt["status"], len(look(batch, at).samples), len(views)) == ("running", 0, 1)
    poll(attempt_id, hosts)
    batch = look(batch, at)
    assert (len(batch.samples), len(batch.events), len(views)) == (66, len(ROWS), 2)
    assert look(batch, at).attempt == batch.attempt
    assert len(views) == 2


def test_no_journal_is_sent_twice_by_polls(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [{"from": 0, "to": 8, "data": '{"a":1}\n'}, {"from": 8, "to": 16, "data": '{"a":2}\n'}]
    monkeypatch.setattr(journal.samples, "chunks_of", lambda *_: {"phases.jsonl": told.pop(0)})
    [attempt_id] = seed.soaks(1, settings().node)
    poll(attempt_id, hosts)
    assert steps_of(attempt_id)[0].offsets == {"phases.jsonl": 8}
    poll(attempt_id, hosts)
    assert steps_of(attempt_id)[0].offsets == {"phases.jsonl": 16}
