"""Work that takes longer than a lease: renewed while it goes on, and thrown away when somebody else has taken over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.attempts.models import Attempt
from app.engine import claim, due, keep, packs, runs
from app.engine.advance import advance
from app.engine.context import load
from app.engine.outcome import Outcome
from app.kit.clock import now
from app.kit.db import database_now, read_session, write_session
from app.settings import settings
from tests.engine_kit import PATIENCE_S, PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step, steps_of, wait_for
from tests.engine_kit.packs import make_tar


@pytest.fixture
def brought(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An attempt whose playbook has ended, so that the next move brings its pack; a lease is short."""
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    tar = make_tar(tmp_path / "survey.tar")
    spec = playbook_step(playbook="packs.yml", params={"tar": str(tar)}, expects={"engine": ("commands.json", "nvme-list.out")})
    attempt_id = make_attempt(spec)
    folder = runs.folder_of(attempt_id, "survey", "run-1")
    drive(attempt_id, until=lambda _: folder.exists())
    wait_for(lambda: runs.look(folder).look is runs.Look.DONE)
    drive(attempt_id, until=lambda _: (folder / "used").exists())  # its events are stored
    monkeypatch.setattr(settings(), "lease_seconds", 1)
    return attempt_id


class Slow:
    """Copying out of a pack, on a disk that hangs until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copy, self.begun, self.go = packs._copy, 0, threading.Event()
        monkeypatch.setattr(packs, "_copy", self)

    def __call__(self, *args: Any) -> Any:
        self.begun += 1
        if self.begun == 1:
            assert self.go.wait(PATIENCE_S)
        return self.copy(*args)


def beside(work: Callable[[], bool]) -> tuple[threading.Thread, list[bool]]:
    """Work in another thread, as another worker does."""
    said: list[bool] = []
    thread = threading.Thread(target=lambda: said.append(work()))
    thread.start()
    return thread, said


def test_a_pack_that_is_brought_longer_than_the_lease_lasts_is_committed_once(brought: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generation, slow = attempt_of(brought).generation, Slow(monkeypatch)
    thread, said = beside(lambda: advance(brought, generation))
    wait_for(lambda: slow.begun)
    end = time.monotonic() + 3 * settings().lease_seconds
    others = []
    while time.monotonic() < end:
        others.append(advance(brought, generation))
        time.sleep(0.2)
    slow.go.set()
    thread.join(PATIENCE_S)
    assert (said, any(others), slow.begun) == ([True], False, 3)
    assert (attempt_of(brought).generation, steps_of(brought)[0].status) == (generation + 1, "done")


@pytest.mark.parametrize(("left", "canceled", "free"), [(0.3, True, True), (0.4, True, False), (0.3, False, False)])
def test_a_cancel_waits_for_the_end_of_no_lease_whose_renewal_was_missed(
    state: Path, monkeypatch: pytest.MonkeyPatch, left: float, canceled: bool, free: bool
) -> None:
    monkeypatch.setattr(settings(), "lease_seconds", 3000)
    attempt_id = make_attempt(playbook_step())
    first = claim.claim(attempt_id, 0, owner="died", node="here")
    assert first is not None
    with write_session() as s:
        row, at = s.get_one(Attempt, attempt_id), database_now(s)
        row.lease_until, row.cancel_requested_at, fence = at + timedelta(seconds=3000 * left), at if canceled else None, row.fence
    with read_session() as s:
        assert [row.attempt_id for row in due.look(s).rows] == [attempt_id] * free
    second = claim.claim(attempt_id, 0, owner="comes", node="here")
    assert (second is not None) == free
    if second is not None:  # and the first, should it live after all, does nothing any more: not here, and not on the targets
        ctx = load(attempt_id, owner="died", node="here")
        assert (claim.renew(first), claim.commit(first, ctx, Outcome()), claim.renew(second)) == (False, False, True)
        assert attempt_of(attempt_id).fence > fence


def test_two_that_bring_the_same_pack_are_not_in_each_others_way_and_one_of_them_commits(brought: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: claim.Claim) -> bool:
        raise OperationalError("UPDATE", {}, Exception("the database is away"))

    generation, slow = attempt_of(brought).generation, Slow(monkeypatch)
    monkeypatch.setattr(keep, "renew", away)  # so nobody can renew, and the first never learns that it was superseded
    thread, said = beside(lambda: advance(brought, generation))
    wait_for(lambda: slow.begun)
    wait_for(lambda: advance(brought, generation), said="the lease ends, and another goes on")
    slow.go.set()
    thread.join(PATIENCE_S)
    assert said == [False]
    assert (attempt_of(brought).status, attempt_of(brought).generation, steps_of(brought)[0].problem) == ("running", generation + 1, None)


def test_who_learns_that_its_lease_is_gone_gives_up_at_once(brought: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generation, slow = attempt_of(brought).generation, Slow(monkeypatch)
    refused = threading.Event()

    def gone(_: claim.Claim) -> bool:
        refused.set()
        return False

    monkeypatch.setattr(keep, "renew", gone)
    thread, said = beside(lambda: advance(brought, generation))
    assert refused.wait(PATIENCE_S)
    time.sleep(0.1)  # until the answer is noted
    slow.go.set()
    thread.join(PATIENCE_S)
    assert (said, slow.begun) == ([False], 1)  # it copied no second file
    assert attempt_of(brought).generation == generation


def test_a_cancel_does_not_wait_for_a_pack_that_is_long_on_its_way(brought: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generation, slow = attempt_of(brought).generation, Slow(monkeypatch)
    monkeypatch.setattr(keep, "LOOK_S", 0.05)
    thread, said = beside(lambda: advance(brought, generation))
    wait_for(lambda: slow.begun)
    with write_session() as s:
        s.merge(attempt_of(brought)).cancel_requested_at = now()
    time.sleep(0.5)  # it is looked for every 0.05 s
    slow.go.set()
    thread.join(PATIENCE_S)
    assert (said, slow.begun) == ([False], 1)  # it copied no second file
    assert attempt_of(brought).lease_owner is None  # so whoever comes next need not wait for the lease's end
    assert drive(brought, until=ended).status == "canceled"
