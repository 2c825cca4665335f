"""Detached jobs: started once, left alone, asked now and then, collected. Real playbooks, a real process that nobody waits for."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import func, select

from app.accounts.actor import SYSTEM
from app.attempts.models import Sample, StepEvent, Transition
from app.attempts.moves import reason_pair
from app.attempts.usecases import retry
from app.engagements.models import Engagement
from app.engine import policy, words
from app.engine.context import Ctx, title_of
from app.engine.models import HostLock
from app.engine.move import move
from app.engine.outcome import Outcome
from app.engine.shutdown import cancel_running
from app.evidence.models import EvidenceFile
from app.evidence.usecases import inputs
from app.kit.clock import now
from app.kit.db import database_now, read_session, write_session
from app.kit.errors import QuadgateError
from app.settings import settings
from app.up.ending import STOPPED
from gates.steps import judge_step, report_step
from gates.text import Text
from tests.engine_kit import LOCAL, PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, steps_of


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    monkeypatch.setattr(policy, "RUN_AGAIN_MIN_S", 0.5)


def job(kind: str = "run", seconds: float = 2.0, lines: int = 20, **spec: Any) -> Any:
    return job_step(params={"kind": kind, "seconds": seconds, "lines": lines}, **spec)


def folder_of_job(state: Path, attempt_id: str) -> Path:
    return next((state / "lab").glob(f"*/gpu01/jobs/{attempt_id}-run-1"))


def runs_of(attempt_id: str) -> list[str]:
    with read_session() as s:
        return sorted(set(s.scalars(select(StepEvent.run).where(StepEvent.attempt_id == attempt_id))))


def samples_of(attempt_id: str) -> list[int]:
    with read_session() as s:
        return list(s.scalars(select(Sample.seq).where(Sample.attempt_id == attempt_id, Sample.stream == "records").order_by(Sample.seq)))


def point_hosts_at(attempt_id: str, hosts: dict[str, Any]) -> None:
    with write_session() as s:
        engagement = s.get_one(Engagement, attempt_of(attempt_id).engagement_id)
        engagement.targets = {**engagement.targets, "hosts": hosts}


AWAY = {"gpu01": {"groups": ["engine", "loadgen"], "address": "127.0.0.1", "port": 9, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA"}}


def test_a_measured_run_takes_one_playbook_to_start_and_one_to_collect_and_none_between(state: Path) -> None:
    attempt_id = make_attempt(job())
    attempt = drive(attempt_id, until=ended)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, step.status, attempt.problem) == ("finished", "done", None)
    assert runs_of(attempt_id) == ["collect-1", "start-1"]
    assert samples_of(attempt_id) == list(range(20))
    assert attempt.counted_at is not None
    assert step.expected_end_at is not None
    with read_session() as s:
        assert sorted(s.scalars(select(EvidenceFile.path))) == [
            f"evidence/run-1/gpu01/{name}" for name in ("exit.json", "pack.json", "records.jsonl")
        ]
        lock = s.scalars(select(HostLock)).one()
        assert (lock.attempt_id, lock.fence, attempt.fence) == (None, 1, 1)


def test_a_soak_is_polled_in_its_own_rhythm_and_its_samples_come_once(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "SOAK_POLL_MIN_S", 1.5)
    attempt_id = make_attempt(job("soak", seconds=6, lines=60))
    attempt = drive(attempt_id, until=ended)
    assert attempt.status == "finished"
    polls = [run for run in runs_of(attempt_id) if run.startswith("poll")]
    assert 1 <= len(polls) <= 3
    late = (steps_of(attempt_id)[0].result or {})["late"]
    assert len(late) >= len(polls)
    assert min(late) >= 0
    assert samples_of(attempt_id) == list(range(60))


def test_silence_of_a_target_is_lost_contact_and_never_a_failure(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "LOST_CONTACT_FIRST_S", 0.5)
    attempt_id = make_attempt(job(seconds=1))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    point_hosts_at(attempt_id, AWAY)
    drive(attempt_id, until=lambda a: a.status == "lost_contact")
    assert steps_of(attempt_id)[0].status == "running"
    point_hosts_at(attempt_id, LOCAL)
    attempt = drive(attempt_id, until=ended)
    with read_session() as s:
        moved = list(s.scalars(select(Transition).where(Transition.attempt_id == attempt_id).order_by(Transition.generation)))
    assert attempt.status == "finished"
    assert [t.event for t in moved] == ["start", "lose_contact", "regain_contact", "finish"]
    title = title_of(steps_of(attempt_id)[0])
    assert [reason_pair(t.reason) for t in moved[1:3]] == [words.SILENT.fill(step=title), words.HEARD_AGAIN.fill(step=title)]
    assert samples_of(attempt_id) == list(range(20))


def test_a_retry_adopts_the_job_and_starts_no_second_one(state: Path) -> None:
    attempt_id = make_attempt(job(seconds=3, lines=30))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    with write_session() as s:  # as an error and a person's retry leave the rows
        step = s.merge(steps_of(attempt_id)[0])
        step.status, step.result = "failed", None
    attempt = drive(attempt_id, until=ended)
    folder = folder_of_job(state, attempt_id)
    assert attempt.status == "finished"
    assert len((folder / "asked").read_text().split()) == 2
    assert len((folder / "started").read_text().split()) == 1
    assert samples_of(attempt_id) == list(range(30))


def test_a_job_that_died_is_evidence_for_the_judge_and_ends_the_runs_after_it(state: Path) -> None:
    attempt_id = make_attempt(job(seconds=3), job_step("run-2", params={"kind": "run", "seconds": 1, "lines": 5}))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    os.kill(int((folder_of_job(state, attempt_id) / "started").read_text()), signal.SIGKILL)
    attempt = drive(attempt_id, until=ended)
    first, second = steps_of(attempt_id)
    assert attempt.status == "finished"  # the judge, which this attempt lacks, would have its say
    assert (first.status, first.problem["code"], second.status) == ("done", "broke_off", "canceled")
    with read_session() as s:
        paths = set(s.scalars(select(EvidenceFile.path)))
    assert "evidence/run-1/gpu01/records.jsonl" in paths
    assert "evidence/run-1/gpu01/exit.json" not in paths


def test_a_report_that_fails_after_a_broken_off_run_is_all_that_a_retry_makes_again(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"schema": 1, "gate": "G2", "verdict": "inconclusive", "because": [], "checks": [], "manifest_hash": "sha256:" + "2" * 64}
    monkeypatch.setattr("gates.judge.judge", lambda bundle: {**told, "plan_hash": bundle.manifest["plan_hash"]})
    attempt_id = make_attempt(job(seconds=3), job_step("run-2", params={"kind": "run", "seconds": 1, "lines": 5}), judge_step(), report_step())
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    os.kill(int((folder_of_job(state, attempt_id) / "started").read_text()), signal.SIGKILL)
    monkeypatch.setattr("app.reports.usecases.render", _no_room)
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.verdict, attempt.problem["code"], attempt.problem["step"]) == ("error", "inconclusive", "disk_full", "report")
    with write_session() as s:
        assert inputs(s, attempt_id)["interruption"] is None  # the paperwork alone is missing
        assert retry(s, attempt_id=attempt_id, actor=SYSTEM).step_index == 3
    monkeypatch.setattr("app.reports.usecases.render", lambda s, *, attempt_id, language: SimpleNamespace(id=language))
    assert drive(attempt_id, until=ended).status == "finished"
    assert [step.status for step in steps_of(attempt_id)] == ["done", "canceled", "done", "done"]
    assert {step.job_id for step in steps_of(attempt_id)} == {f"{attempt_id}-run-1", None}
    assert [folder.name for folder in (state / "lab").glob("*/gpu01/jobs/*")] == [f"{attempt_id}-run-1"]


def test_why_a_report_could_not_be_written_is_said_in_each_language_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise QuadgateError("no_glyph", Text("The font lacks a glyph.", "字体缺字。"))

    monkeypatch.setattr("app.reports.usecases.render", broken)
    attempt = drive(make_attempt(report_step()), until=ended)
    assert attempt.problem["code"] == "report_failed"
    assert "The font lacks a glyph" in attempt.problem["en"]
    assert "报告生成失败：字体缺字。排除后重试" in attempt.problem["zh-CN"]


def _no_room(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_cancel_that_comes_while_a_move_is_under_way_is_not_slept_over(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = make_attempt(job(seconds=120))

    def decide_and_be_canceled(ctx: Ctx) -> Outcome:
        outcome = move(ctx)
        if outcome.step.get("status") == "running":  # the job was started; the next look is due in two minutes
            assert cancel_running(STOPPED) == [attempt_id]
        return outcome

    monkeypatch.setattr("app.engine.advance.move", decide_and_be_canceled)
    attempt = drive(attempt_id, until=lambda a: a.cancel_requested_at is not None)
    assert steps_of(attempt_id)[0].status == "running"
    with read_session() as s:
        assert attempt.next_due_at <= database_now(s)
    assert drive(attempt_id, until=ended).status == "canceled"


def test_a_cancel_stops_the_job_on_its_target(state: Path) -> None:
    attempt_id = make_attempt(job(seconds=60))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    with write_session() as s:
        attempt = s.merge(attempt_of(attempt_id))
        attempt.cancel_requested_at, attempt.cancel_reason = now(), "wrong firmware"
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem, steps_of(attempt_id)[0].status) == ("canceled", None, "canceled")
    assert "stop-1" in runs_of(attempt_id)
    pid = int((folder_of_job(state, attempt_id) / "started").read_text())
    from app.engine import marker

    assert marker.state(pid) in ("", "Z")
    with read_session() as s:  # it had measured, and the plan of these tests allows one attempt
        engagement = s.get_one(Engagement, attempt.engagement_id)
        assert (engagement.state, engagement.version) == ("not_concluded", 2)


def test_a_cancel_says_what_it_could_not_stop(state: Path) -> None:
    attempt_id = make_attempt(job(seconds=4))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running")
    point_hosts_at(attempt_id, AWAY)
    with write_session() as s:
        s.merge(attempt_of(attempt_id)).cancel_requested_at = now()
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem["code"]) == ("canceled", "not_stopped")
    assert "gpu01" in attempt.problem["en"]
    assert "127.0.0.1:9" in attempt.problem["zh-CN"]


def test_two_attempts_never_change_one_target_at_once(state: Path) -> None:
    first = make_attempt(job(seconds=2), code="ONE")
    second = make_attempt(job(seconds=1), code="ONE")
    drive(first, until=lambda a: steps_of(a.id)[0].status == "running")
    waiting = drive(second, until=lambda a: a.generation >= 2)
    assert (waiting.status, steps_of(second)[0].status) == ("running", "pending")
    drive(first, until=ended)
    attempt = drive(second, until=ended)
    assert (attempt.status, attempt.fence) == ("finished", 2)
    with read_session() as s:
        assert s.scalar(select(func.count()).select_from(HostLock)) == 1
