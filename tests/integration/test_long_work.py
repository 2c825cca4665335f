"""Judging and printing take long, and hold nothing meanwhile: another writer commits while they go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select

from app.accounts.actor import SYSTEM
from app.attempts.judging import judge_again
from app.attempts.models import VerdictRevision
from app.audit import chain
from app.engagements.models import Engagement
from app.engine.advance import advance
from app.evidence import repository, store
from app.kit.db import read_session, write_session
from app.reports.models import Report
from app.reports.usecases import render
from gates.model import StepKind, StepSpec
from gates.text import Text
from tests.engine_kit import PATIENCE_S, attempt_of, drive, make_attempt, steps_of
from tests.people import Cast
from tests.scenes import engage, run


class Slow:
    """A work that goes on until it is let go, each time it is done."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work, self.begun, self.go, self.times = work, threading.Event(), threading.Event(), 0

    def __call__(self, *args: Any, **more: Any) -> Any:
        self.times += 1
        self.begun.set()
        assert self.go.wait(PATIENCE_S)
        return self.work(*args, **more)


def verdict(bundle: Any) -> dict[str, Any]:
    told = {"schema": 1, "gate": "G2", "verdict": "inconclusive", "because": [], "checks": [], "summary": {"en": "-", "zh-CN": "-"}}
    return {**told, "manifest_hash": "sha256:" + "2" * 64, "plan_hash": bundle.manifest["plan_hash"]}


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow(verdict)
    monkeypatch.setattr("gates.judge.judge", slow)
    return slow


def another_writer() -> None:
    """Write as everybody does: with a row of the audit chain, whose head one writer at a time has."""
    with write_session() as s:
        chain.record(s, actor=SYSTEM, action="test.write", object_kind="test", object_id="-", data={})


def while_it_works(slow: Slow, work: Callable[[], Any], meanwhile: Callable[[], None] = another_writer) -> list[Any]:
    """Begin a work, write beside it, then let it end. A writer that had to wait for the work would wait for ever, and say so after its time-out."""
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(work()))
    thread.start()
    try:
        assert slow.begun.wait(PATIENCE_S)
        meanwhile()
        assert not said
    finally:
        slow.go.set()
        thread.join(PATIENCE_S)
    assert said, "the work failed; its trace is above"
    return said


def to_judge() -> str:
    """An attempt whose next move is its judgement."""
    return make_attempt(StepSpec(key="judge", kind=StepKind.JUDGE, title=Text("judge", "判定")))


def revisions_of(attempt_id: str) -> int:
    with read_session() as s:
        return s.scalar(select(func.count()).select_from(VerdictRevision).where(VerdictRevision.attempt_id == attempt_id)) or 0


def test_another_writer_commits_while_the_engine_judges(cast: Cast, judge: Slow) -> None:
    attempt_id = to_judge()
    drive(attempt_id, until=lambda a: a.status == "running")
    assert while_it_works(judge, lambda: advance(attempt_id, None)) == [True]
    assert (attempt_of(attempt_id).verdict, revisions_of(attempt_id), steps_of(attempt_id)[0].status) == ("inconclusive", 1, "done")


def test_a_judgement_whose_ground_changed_meanwhile_is_made_anew(cast: Cast, judge: Slow) -> None:
    def another_contract() -> None:
        with write_session() as s:
            s.get_one(Engagement, attempt_of(attempt_id).engagement_id).contract = "HT-2"

    attempt_id = to_judge()
    drive(attempt_id, until=lambda a: a.status == "running")
    assert while_it_works(judge, lambda: advance(attempt_id, None), another_contract) == [False]
    assert (attempt_of(attempt_id).verdict, revisions_of(attempt_id)) == (None, 0)
    drive(attempt_id, until=lambda a: a.status == "finished")
    with read_session() as s:
        told = repository.file_at(s, attempt_id, "evidence/inputs.json")
        assert told is not None
        assert b"HT-2" in store.read(told.sha256)
    assert (judge.times, revisions_of(attempt_id)) == (2, 1)


def judged(cast: Cast) -> str:
    """An attempt at G1 that was judged and has ended."""
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = run(s, cast, engagement, "G1")
        return attempt.id


def test_another_writer_commits_while_a_person_has_it_judged_again(cast: Cast, judge: Slow) -> None:
    attempt_id = judged(cast)
    while_it_works(judge, lambda: judge_again(write_session, attempt_id=attempt_id, why="again", actor=cast.li_wei))
    assert revisions_of(attempt_id) == 2


def test_another_writer_commits_while_a_report_is_printed(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = judged(cast)
    slow = Slow(lambda *_: b"%PDF")
    monkeypatch.setattr("app.reports.usecases.render_pdf", slow)
    while_it_works(slow, lambda: render(write_session, attempt_id=attempt_id, language="en"))
    with read_session() as s:
        assert slow.times == 1
        assert s.scalar(select(func.count()).select_from(Report).where(Report.attempt_id == attempt_id, Report.language == "en")) >= 1
