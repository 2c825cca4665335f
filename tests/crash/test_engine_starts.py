"""Exactly one start, whoever is killed when, whatever messages come how often."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from app.attempts.models import Transition
from app.engine import drive as drive_module
from app.engine import hints, runner, tick, words
from app.engine.advance import advance
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.settings import ROOT, settings
from gates.text import Text
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, fall_silent, make_attempt, playbook_step, steps_of

DIES = """
import os, signal, sys
from app.engine import runner
from app.engine.advance import advance
real = runner.spawn
def dying(*args):
    if sys.argv[2] == "after":
        real(*args)
    os.kill(os.getpid(), signal.SIGKILL)
runner.spawn = dying
advance(sys.argv[1], 1)
"""


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    monkeypatch.setenv("QUADGATE_LEASE_SECONDS", "1")
    settings.cache_clear()


def starts_of(attempt_id: str) -> list[str]:
    return (settings().runs_dir / attempt_id / "starts").read_text().split()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_starter_that_is_killed_around_the_spawn_leaves_exactly_one_start(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = make_attempt(playbook_step())
    advance(attempt_id, 0)
    long_lease = {**os.environ, "QUADGATE_LEASE_SECONDS": "600"}
    done = subprocess.run([sys.executable, "-c", DIES, attempt_id, moment], cwd=ROOT, env=long_lease, timeout=60, check=False)
    assert done.returncode == -9
    assert attempt_of(attempt_id).generation == 1  # it committed nothing
    monkeypatch.setattr(settings(), "lease_seconds", 600)
    assert not advance(attempt_id, 1)  # its lease protects what it may have begun
    monkeypatch.setattr(settings(), "lease_seconds", 1)
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).lease_until = now()
    attempt = drive(attempt_id, until=ended)
    assert attempt.status == "finished"
    assert starts_of(attempt_id) == [attempt_id]
    assert steps_of(attempt_id)[0].try_no == 1


def test_doubled_late_and_early_messages_start_nothing_twice() -> None:
    attempt_id = make_attempt(playbook_step())
    over = threading.Event()

    def hammer(shift: int | None) -> None:
        while not over.wait(0.02):
            advance(attempt_id, None if shift is None else attempt_of(attempt_id).generation + shift)

    threads = [threading.Thread(target=hammer, args=(shift,)) for shift in (0, 0, -1, 1, None)]
    for thread in threads:
        thread.start()
    try:
        from tests.engine_kit import wait_for

        wait_for(lambda: ended(attempt_of(attempt_id)))
    finally:
        over.set()
        for thread in threads:
            thread.join(30)
    assert attempt_of(attempt_id).status == "finished"
    assert starts_of(attempt_id) == [attempt_id]
    with read_session() as s:
        path = list(s.scalars(select(Transition.event).where(Transition.attempt_id == attempt_id).order_by(Transition.generation)))
    assert path == ["start", "finish"]


def test_two_ticks_at_once_hint_a_due_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, int | None]] = []
    monkeypatch.setattr(hints, "publish_advance", lambda attempt_id, generation, *_: sent.append((attempt_id, generation)))
    monkeypatch.setattr(hints, "publish", lambda *_args, **_kw: True)
    ids = {make_attempt(playbook_step()) for _ in range(5)}
    gate = threading.Barrier(2)

    def run() -> None:
        gate.wait()
        tick.tick()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(sent) == sorted((attempt_id, 0) for attempt_id in ids)


def test_a_commit_under_an_old_generation_is_dropped() -> None:
    from app.engine.claim import claim, commit
    from app.engine.context import load
    from app.engine.outcome import Outcome
    from gates.transitions import Event

    attempt_id = make_attempt(playbook_step())
    held = claim(attempt_id, 0, owner="me", node="n")
    assert held is not None
    ctx = load(attempt_id, owner="me", node="n")
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).generation = 7  # a person did something meanwhile
    assert not commit(held, ctx, Outcome(event=Event.START))
    assert attempt_of(attempt_id).status == "queued"
    with read_session() as s:
        assert s.scalars(select(Transition).where(Transition.attempt_id == attempt_id)).all() == []


def test_a_row_that_cannot_be_moved_is_pushed_back_and_never_spins(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.engine import advance as module

    def broken(*_args: object, **_kw: object) -> None:
        raise RuntimeError("poison")

    attempt_id = make_attempt(playbook_step())
    monkeypatch.setattr(module, "load", broken)
    assert not advance(attempt_id, 0)
    attempt = attempt_of(attempt_id)
    assert (attempt.status, attempt.lease_owner) == ("queued", None)
    with read_session() as s:
        from app.kit.db import database_now

        assert attempt.next_due_at is not None
        assert (attempt.next_due_at - database_now(s)).total_seconds() > 5


def test_another_node_takes_over_only_from_a_silent_one_and_with_a_higher_fence() -> None:
    from app.engine import locks, nodes
    from app.engine.models import HostLock
    from app.engine.policy import NODE_STALE_S

    attempt_id = make_attempt(playbook_step())
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).node = "far"
    for node in ("far", settings().node):  # on one evidence store
        nodes.beat(node)
    assert locks.take(attempt_id, ["E/gpu01"]) == 1
    assert not advance(attempt_id, 0)
    fall_silent("far", NODE_STALE_S + 1)
    assert advance(attempt_id, 0)
    attempt = attempt_of(attempt_id)
    with read_session() as s:
        assert (attempt.node, attempt.fence, s.get_one(HostLock, "E/gpu01").fence) == (settings().node, 2, 2)


def test_a_lease_and_a_hint_from_before_the_clock_was_set_back_hold_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    from app.kit.db import database_now

    sent: list[str] = []
    monkeypatch.setattr(hints, "publish_advance", lambda attempt_id, *_: sent.append(attempt_id))
    monkeypatch.setattr(hints, "publish", lambda *_args, **_kw: True)
    attempt_id = make_attempt(playbook_step())
    with write_session() as s:
        attempt = s.merge(attempt_of(attempt_id))
        later = database_now(s) + timedelta(hours=1)
        attempt.lease_owner, attempt.lease_until, attempt.last_enqueued_at = "somebody", later, later
    tick.tick()
    assert sent == [attempt_id]
    assert advance(attempt_id, 0)
    assert attempt_of(attempt_id).status == "running"


def _hosts_that_die(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, times: int) -> None:
    """Let the launchers of playbook hosts be killed before they can fork, so often; those after them are the real ones."""
    program = tmp_path / "host.py"
    text = (
        "import os, signal, runpy, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        f"seen = {str(tmp_path / 'seen')!r}\n"
        "open(seen, 'a').write('x')\n"
        f"if len(open(seen).read()) <= {times}: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"runpy.run_path({str(runner.HOST_PROGRAM)!r}, run_name='__main__')\n"
    )
    program.write_text(text)
    monkeypatch.setattr(runner, "HOST_PROGRAM", program)
    monkeypatch.setattr(drive_module, "WATCH_S", 0.0)


def test_a_host_that_is_killed_before_it_began_is_started_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _hosts_that_die(monkeypatch, tmp_path, 2)
    attempt_id = make_attempt(playbook_step())
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem) == ("finished", None)
    assert starts_of(attempt_id) == [attempt_id]
    assert steps_of(attempt_id)[0].try_no == 1


def test_a_host_that_never_comes_to_begin_is_given_up_with_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _hosts_that_die(monkeypatch, tmp_path, 99)
    attempt = drive(make_attempt(playbook_step()), until=ended)
    assert attempt.status == "error"
    assert attempt.problem is not None
    assert attempt.problem["code"] == words.lost_too_often(Text("x", "x"), 1).code
    assert len((tmp_path / "seen").read_text()) == drive_module.UNBORN_MAX + 1


def test_a_tick_whose_database_is_away_is_said_in_a_line_and_the_next_one_works(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlalchemy.exc import OperationalError

    def away() -> None:
        raise OperationalError("SELECT", {}, Exception("the server closed the connection"))

    attempt_id = make_attempt(playbook_step())
    sent: list[str] = []
    monkeypatch.setattr(hints, "publish_advance", lambda attempt_id, *_: sent.append(attempt_id))
    monkeypatch.setattr(hints, "publish", lambda *_args, **_kw: True)
    with monkeypatch.context() as patch:
        patch.setattr(tick, "read_session", away)
        assert tick.tick() == 0
    assert tick.tick() == 1
    assert sent == [attempt_id]


def test_first_signs_of_life_that_come_at_once_are_no_error() -> None:
    from app.engine import nodes
    from app.engine.models import Canary, Node

    gate, wrong = threading.Barrier(4), []

    def live(what: Callable[[], None]) -> None:
        gate.wait()
        try:
            what()
        except Exception as error:
            wrong.append(error)

    signs = (lambda: nodes.beat("one"), lambda: nodes.beat("one"), nodes.canary_returned, nodes.canary_returned)
    threads = [threading.Thread(target=live, args=(sign,)) for sign in signs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    with read_session() as s:
        assert s.get_one(Node, "one").heartbeat_at is not None
        assert s.get_one(Canary, nodes.CANARY).returned_at is not None
