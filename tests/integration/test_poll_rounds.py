"""Polls of one site that are due together: who boards, what each attempt gets, and that nobody pays for another (docs/adr/0009)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from app.attempts.models import Attempt, Sample, Step, StepEvent
from app.engagements.models import Engagement
from app.engine import events, rounds, runner, runs
from app.engine.advance import advance
from app.engine.claim import claim
from app.engine.policy import EARLY_SHARE, ROUND_MAX
from app.engine.runner import HostsFull, RunnerAway
from app.kit.db import database_now, read_session, write_session
from app.settings import settings
from lanes.scale import runner as fake
from lanes.scale import seed
from tests.engine_kit import PLAYBOOKS, attempt_of, steps_of, wait_for
from tests.integration.test_soak_polls import Hosts, let_it_be_due

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZha2VrZXlmYWtla2V5ZmFrZWtleWZha2VrZXlmYWtlazEy"


class Launches:
    """Playbook hosts that are not there: what each was given, and what it leaves when it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[list[str]] = []
        self.hosts = Hosts()
        self.trouble: Exception | None = None
        monkeypatch.setattr(runner, "room", lambda: ROUND_MAX)
        monkeypatch.setattr(runner, "spawn", self.spawn)
        monkeypatch.setattr(fake.nudge, "push", lambda *_: None)
        monkeypatch.setattr(fake, "time", SimpleNamespace(monotonic=lambda: 10.0))  # so old is every soak

    def spawn(self, folders: list[Path], locks: list[int], _: dict[str, str]) -> None:
        if self.trouble:
            raise self.trouble
        self.given.append([folder.parent.name for folder in folders])
        for folder, lock in zip(folders, locks, strict=True):
            fake.Host(self.hosts, folder, os.dup(lock)).begin()


@pytest.fixture
def launches(state: Path, monkeypatch: pytest.MonkeyPatch) -> Launches:
    return Launches(monkeypatch)


def change(attempt_id: str, *, sooner_s: float = 1.0, site: str = "", **memo: Any) -> None:
    """Let a soak be due so many seconds ago (a negative number: in so many), at another site, with something else in its memory."""
    with write_session() as s:
        step = s.scalars(select(Step).where(Step.attempt_id == attempt_id, Step.position == 0)).one()
        at = database_now(s) - timedelta(seconds=sooner_s)
        step.result = {**(step.result or {}), "ask_at": at.isoformat(), **memo}
        attempt = s.get_one(Attempt, attempt_id)
        attempt.next_due_at = at
        if site:
            s.get_one(Engagement, attempt.engagement_id).site = site


def due(count: int) -> list[str]:
    made = seed.soaks(count, settings().node)
    for attempt_id in made:
        change(attempt_id)
    return made


def statuses(ids: list[str]) -> list[str]:
    return [steps_of(attempt_id)[0].status for attempt_id in ids]


def test_all_that_are_due_at_a_site_are_polled_by_one_host_and_each_goes_on_by_itself(launches: Launches) -> None:
    ids = due(3)
    before = [attempt_of(attempt_id).generation for attempt_id in ids]
    assert advance(ids[0], None)
    assert (launches.given, statuses(ids)) == ([ids], ["polling"] * 3)
    assert [attempt_of(attempt_id).lease_owner for attempt_id in ids] == [None] * 3
    launches.hosts.go_on()
    for attempt_id in reversed(ids):
        assert advance(attempt_id, attempt_of(attempt_id).generation)
    assert statuses(ids) == ["running"] * 3
    assert [attempt_of(attempt_id).generation for attempt_id in ids] == [generation + 2 for generation in before]
    assert not any(advance(attempt_id, generation) for attempt_id, generation in zip(ids, before, strict=True))  # hints from before the round
    assert len(launches.given) == 1


@pytest.mark.parametrize(
    "who",
    [
        lambda one: change(one, sooner_s=-60 * EARLY_SHARE - 2),
        lambda one: change(one, site="elsewhere"),
        lambda one: change(one, misses=1),
        lambda one: change(one, lost=1),
        lambda one: claim(one, None, owner="another", node=settings().node),
        lambda one: reached_by_ssh(one),
        lambda one: canceled(one),
        lambda one: of_another_node(one),
        lambda one: change(one, ask_at="some day"),
    ],
    ids=["not due", "another site", "silent", "lost before", "claimed", "reached otherwise", "canceled", "another node", "unreadable"],
)
def test_who_is_not_to_be_polled_with_others_is_not(launches: Launches, who: Callable[[str], Any]) -> None:
    ids = due(3)
    who(ids[1])
    advance(ids[0], None)
    assert launches.given == [[ids[0], ids[2]]]


def reached_by_ssh(attempt_id: str) -> None:
    with write_session() as s:
        engagement = s.get_one(Engagement, attempt_of(attempt_id).engagement_id)
        engagement.targets = {**engagement.targets, "hosts": {"gpu01": {"groups": ["engine", "loadgen"], "address": "127.0.0.1", "host_key": KEY}}}


def canceled(attempt_id: str) -> None:
    with write_session() as s:
        s.get_one(Attempt, attempt_id).cancel_requested_at = database_now(s)


def of_another_node(attempt_id: str) -> None:
    with write_session() as s:
        s.get_one(Attempt, attempt_id).node = "another"


def test_who_was_silent_or_lost_is_polled_alone(launches: Launches) -> None:
    ids = due(3)
    change(ids[0], lost=1)
    advance(ids[0], None)
    assert launches.given == [[ids[0]]]
    launches.hosts.go_on()
    advance(ids[0], None)
    change(ids[0])
    advance(ids[0], None)
    assert launches.given[1] == ids  # its poll came home, so it is one of them again


def test_who_is_nearly_due_comes_early_and_is_in_step_from_then_on(launches: Launches) -> None:
    ids = due(2)
    change(ids[1], sooner_s=-60 * EARLY_SHARE + 2)
    advance(ids[0], None)
    assert launches.given == [ids]
    assert (steps_of(ids[1])[0].result or {})["late"] == [0.0]


def test_a_round_is_no_larger_than_a_host_may_be_given(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = due(5)
    monkeypatch.setattr(runner, "room", lambda: 3)
    advance(ids[0], None)
    advance(ids[4], None)
    assert [len(given) for given in launches.given] == [3, 2]
    assert sorted(launches.given[0] + launches.given[1]) == sorted(ids)


@pytest.mark.parametrize("trouble", [RunnerAway("away"), HostsFull("full")])
def test_a_host_that_cannot_be_started_now_costs_nobody_a_try(launches: Launches, trouble: Exception) -> None:
    ids = due(3)
    launches.trouble = trouble
    assert not advance(ids[0], None)
    assert statuses(ids) == ["running"] * 3
    assert [(a.status, a.lease_owner, a.problem) for a in map(attempt_of, ids)] == [("running", None, None)] * 3
    launches.trouble = None
    advance(ids[2], None)
    assert [sorted(given) for given in launches.given] == [sorted(ids)]


def test_one_whose_poll_cannot_be_prepared_holds_up_nobody_else(launches: Launches) -> None:
    ids = due(3)
    folder = runs.folder_of(ids[1], "soak", "poll-1")
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    advance(ids[0], None)
    assert launches.given == [[ids[0], ids[2]]]
    assert [attempt_of(attempt_id).status for attempt_id in ids] == ["running", "error", "running"]


def test_a_generation_that_went_on_while_the_round_began_is_not_written_and_adopts_its_poll(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, launch = due(2), runs.launch

    def launching(boarded: Any) -> None:
        launch(boarded)
        with write_session() as s:  # the lease had ended meanwhile, and somebody else took it
            attempt = s.get_one(Attempt, ids[1])
            attempt.generation, attempt.lease_owner, attempt.lease_until = attempt.generation + 1, None, None

    monkeypatch.setattr(runs, "launch", launching)
    assert advance(ids[0], None)
    monkeypatch.setattr(runs, "launch", launch)
    assert statuses(ids) == ["polling", "running"]
    assert advance(ids[1], None)
    assert (statuses(ids), len(launches.given)) == (["polling"] * 2, 1)
    launches.hosts.go_on()
    advance(ids[1], None)
    assert statuses(ids) == ["polling", "running"]


def test_two_workers_at_once_ask_every_target_once(launches: Launches) -> None:
    import threading

    ids = due(6)
    gate = threading.Barrier(3)

    def work(first: str) -> None:
        gate.wait()
        advance(first, None)

    threads = [threading.Thread(target=work, args=(attempt_id,)) for attempt_id in ids[::2]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for attempt_id in ids:  # who was being claimed elsewhere is polled when its own hint comes
        if steps_of(attempt_id)[0].status == "running":
            let_it_be_due(attempt_id)
            advance(attempt_id, None)
    assert sorted(attempt_id for given in launches.given for attempt_id in given) == sorted(ids)


@pytest.fixture
def real(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Four soaks of one site whose targets all call themselves gpu01: two run, one does not answer, one answers nothing that can be read."""
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    monkeypatch.setattr(rounds, "ways", lambda _: frozenset())  # so that a target without an sshd can be among them
    ids, locks = due(4), []
    reached_by_ssh(ids[2])
    with write_session() as s:
        closed = s.get_one(Engagement, attempt_of(ids[2]).engagement_id)
        closed.targets = {"hosts": {"gpu01": {**closed.targets["hosts"]["gpu01"], "port": 9}}}
        broken = s.get_one(Engagement, attempt_of(ids[3]).engagement_id)
        broken.targets = {"hosts": {"gpu01": {**broken.targets["hosts"]["gpu01"], "python": "/bin/false"}}}
    for n, attempt_id in enumerate(ids[:2]):
        job = state / "lab" / f"S{n:05d}" / "gpu01" / "jobs" / f"{attempt_id}-soak"
        job.mkdir(parents=True)
        (job / "records.jsonl").write_text("".join(f'{{"seq": {seq}, "of": {n}}}\n' for seq in range(3 + n)))
        locks.append(os.open(job / "lock", os.O_RDWR | os.O_CREAT))
        fcntl.flock(locks[-1], fcntl.LOCK_EX)
    yield ids
    for lock in locks:
        os.close(lock)


def test_one_ansible_playbook_polls_a_site_and_every_attempt_gets_what_is_its_own(real: list[str], state: Path) -> None:
    advance(real[0], None)
    folders = [runs.folder_of(attempt_id, "soak", "poll-1") for attempt_id in real]
    wait_for(lambda: all(runs.look(folder).look is runs.Look.DONE for folder in folders), said="every run of the round has its result")
    told = [runs.look(folder).result for folder in folders]
    assert [(one["status"], one["rc"]) for one in told] == [
        ("successful", 0),
        ("successful", 0),
        ("failed", told[2]["rc"]),
        ("failed", told[2]["rc"]),
    ]
    assert told[2]["rc"] in (2, 4)
    written = [events.read_new(folder / "events.jsonl", 0)[0] for folder in folders]
    begun = [{e["uuid"] for e in rows if e["event"] == "playbook_on_start"} for rows in written]
    assert len(begun[0]) == 1
    assert begun == [begun[0]] * 4  # one process, one playbook
    for folder, result, rows in zip(folders, told, written, strict=True):
        text = (folder / "events.jsonl").read_text() + (folder / "result.json").read_text()
        assert "qg0" not in text
        assert {host for stats in result["stats"].values() for host in stats} == {"gpu01"}
        assert [row["counter"] for row in rows] == list(range(1, result["events"] + 1))
        others = [attempt_id for attempt_id in real if attempt_id != folder.parent.name]
        assert not any(attempt_id in text for attempt_id in others)
        assert not (folder / "private").exists()
        assert not (folder / "job.json").exists()
    for attempt_id in real:
        advance(attempt_id, None)
        advance(attempt_id, None)
    assert [attempt_of(attempt_id).status for attempt_id in real] == ["running", "running", "lost_contact", "error"]
    with read_session() as s:
        for n, attempt_id in enumerate(real[:2]):
            samples = list(s.execute(select(Sample.seq, Sample.data).where(Sample.attempt_id == attempt_id).order_by(Sample.seq)))
            assert [(seq, data["of"]) for seq, data in samples] == [(seq, n) for seq in range(3 + n)]
        for attempt_id, rows in zip(real, written, strict=True):
            stored = set(s.scalars(select(StepEvent.uuid).where(StepEvent.attempt_id == attempt_id)))
            assert stored == {row["uuid"] for row in rows}
