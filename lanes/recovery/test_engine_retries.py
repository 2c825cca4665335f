"""What a retry does with a job that measures: it asks, and never measures a second time; an engine that never came up is followed by another job."""

from __future__ import annotations

import json
import os
import shutil
import signal
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.accounts.actor import SYSTEM
from app.attempts.models import Attempt
from app.attempts.usecases import retry
from app.engine import counting, policy
from app.engine.steps import job as job_module
from app.engine.steps.job import BEFORE
from app.engine.steps.journal import never_began
from app.kit.clock import now
from app.kit.db import write_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, drive, ended, job_step, make_attempt, steps_of


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    for name, value in (("RUN_AGAIN_MIN_S", 0.2), ("RUN_MARGIN_S", 0.2), ("SOAK_POLL_MIN_S", 0.3), ("SOAK_POLL_MAX_S", 0.3)):
        monkeypatch.setattr(policy, name, value)


def job(kind: str = "run", seconds: float = 0.5, **params: Any) -> Any:
    return job_step(params={"kind": kind, "seconds": seconds, "lines": 5, **params})


def retried(attempt_id: str) -> Attempt:
    with write_session() as s:
        retry(s, attempt_id=attempt_id, actor=SYSTEM)
    return drive(attempt_id, until=ended)


def jobs_of(state: Path) -> list[Path]:
    return sorted((state / "lab").glob("*/gpu01/jobs/*"))


def test_an_engine_that_never_came_up_is_an_error_that_does_not_count_and_a_retry_starts_another_job(state: Path) -> None:
    attempt_id = make_attempt(job(ends="cool"))
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem["code"], attempt.counted_at) == ("error", "engine_failed", None)
    assert "did not answer http://x/health within 1 s" in attempt.problem["en"]
    assert "did not answer http://x/health within 1 s" in attempt.problem["zh-CN"]
    again = retried(attempt_id)
    assert (again.status, again.counted_at) == ("error", None)
    (jobs_of(state)[0].parent.parent / "engine-ok").touch()
    last = retried(attempt_id)
    step = steps_of(attempt_id)[0]
    assert (last.status, last.counted_at is not None, step.status, step.problem) == ("finished", True, "done", None)
    assert step.job_id == f"{attempt_id}-run-1.3"
    assert [one["job"] for one in step.result[BEFORE]] == [f"{attempt_id}-run-1", f"{attempt_id}-run-1.2"]
    assert [len((folder / "started").read_text().split()) for folder in jobs_of(state)] == [1, 1, 1]


def test_an_engine_that_fails_once_something_was_loaded_breaks_the_run_off_and_counts() -> None:
    attempt_id = make_attempt(job(ends="cool,canary"))
    attempt = drive(attempt_id, until=ended)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, attempt.counted_at is not None) == ("finished", True)  # the judge, which this attempt lacks, would have its say
    assert (step.status, step.problem["code"]) == ("done", "broke_off")


FULL = {"outcome": "error", "error": {"kind": "no_room", "message": "The soak's journals need 9 GB."}}
ENGINE = {"outcome": "error", "error": {"kind": "engine", "message": "no answer"}}


@pytest.mark.parametrize(
    ("phases", "end", "state", "proven"),
    [
        (["cool"], ENGINE, "exited", True),
        (["cool", "warmup"], ENGINE, "exited", True),
        ([], ENGINE, "exited", True),
        ([], FULL, "exited", True),
        (["store"], FULL, "exited", False),
        (["store"], ENGINE, "exited", False),
        (["cool", "measure"], ENGINE, "exited", False),
        (["cool", "repeat"], ENGINE, "exited", False),
        (["cool", "soak"], ENGINE, "exited", False),
        (["cool", "a phase of tomorrow"], ENGINE, "exited", False),
        (["torn"], ENGINE, "exited", False),
        (None, ENGINE, "exited", False),
        (["cool"], ENGINE, "dead", False),
        (["cool"], {**ENGINE, "error": {"kind": "disk_full", "message": "x"}}, "exited", False),
        (["cool"], {"outcome": "stopped", "error": None}, "exited", False),
        (["cool"], None, "exited", False),
    ],
)
def test_only_a_job_whose_own_files_prove_it_never_came_to_measure(tmp_path: Path, phases: Any, end: Any, state: str, proven: bool) -> None:
    folder = tmp_path / "gpu01" / "pack.d"
    folder.mkdir(parents=True)
    if phases is not None:
        (folder / "phases.jsonl").write_text("".join(json.dumps({"phase": name}) + "\n" if name != "torn" else '{"phase": ' for name in phases))
    if end is not None:
        (folder / "exit.json").write_text(json.dumps(end))
    assert never_began({"gpu01": {"state": state}}, tmp_path) == ({"gpu01": (end["error"]["kind"], end["error"]["message"])} if proven else None)
    assert never_began({"gpu01": {"state": state}, "gpu02": {"state": state}}, tmp_path) is None


def begun(kind: str, state: Path) -> tuple[str, Path]:
    """Bring a job to where its target is known to have it, and a soak to where some of its journal was fetched; then end its process."""
    attempt_id = make_attempt(job(kind, seconds=1.0 if kind == "run" else 60.0))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "running" and (kind == "run" or bool(steps_of(a.id)[0].offsets)))
    folder = jobs_of(state)[0]
    if kind == "soak":
        os.kill(int((folder / "started").read_text()), signal.SIGKILL)
    return attempt_id, folder


@pytest.mark.parametrize("kind", ["run", "soak"])
def test_a_job_that_somebody_removed_is_never_measured_a_second_time(state: Path, kind: str) -> None:
    attempt_id, folder = begun(kind, state)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)  # it may still have written
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem["code"]) == ("error", "job_absent")
    assert "never measured a second time" in attempt.problem["en"]
    attempt = retried(attempt_id)
    step = steps_of(attempt_id)[0]
    assert (attempt.status, attempt.counted_at is not None, step.status, step.problem["code"]) == ("finished", True, "done", "broke_off")
    assert not (folder / "asked").exists()  # nobody ordered it again


def test_a_job_that_comes_back_is_the_same_job(state: Path) -> None:
    attempt_id, folder = begun("run", state)
    away = folder.parent.parent / "not-mounted"
    folder.rename(away)
    assert drive(attempt_id, until=ended).problem["code"] == "job_absent"
    away.rename(folder)
    attempt = retried(attempt_id)
    assert (attempt.status, steps_of(attempt_id)[0].job_id) == ("finished", folder.name)
    assert (len((folder / "asked").read_text().split()), len((folder / "started").read_text().split())) == (1, 1)


def test_a_retry_after_an_overdue_job_waits_for_as_long_again() -> None:
    began, limit, expected = now(), 600, 60.0
    memo: dict[str, Any] = {counting.SINCE: began.isoformat(), "expected_s": expected, "sure": True}

    def after(seconds: float, memo: dict[str, Any], status: str = "collecting") -> Any:
        title = {"en": "Run 1", "zh-CN": "第 1 轮"}
        row = {"spec": {"timeout_s": limit, "params": {"kind": "run"}}, "result": memo, "title": title, "status": status, "try_no": 1}
        return SimpleNamespace(now=began + timedelta(seconds=seconds), current=SimpleNamespace(**row, expected_end_at=began + timedelta(seconds=60)))

    def looks(memo: dict[str, Any], begin: int, end: int) -> Any:
        """Look at the job every 30 s, as its memory says."""
        for second in range(begin, end + 1, 30):
            at = after(second, memo)
            outcome = job_module._still_running(at, {**memo, "ask_at": at.now.isoformat(), "ask_s": 30.0})
            memo = outcome.step["result"]
        return outcome

    end = int(expected)
    assert looks(memo, end, end + limit).trouble is None
    assert looks(memo, end, end + limit + 30).trouble.code == "job_overdue"
    asked = job_module._ask_again(after(1000, memo, "pending")).step["result"]
    assert looks(asked, 1000, 1000 + limit).trouble is None
    assert looks(asked, 1000, 1000 + limit + 60).trouble.code == "job_overdue"


def test_a_clock_that_was_set_forward_by_hours_makes_no_job_overdue() -> None:
    began, limit = now(), 600
    memo: dict[str, Any] = {counting.SINCE: began.isoformat(), "expected_s": 60.0, "ask_at": began.isoformat(), "ask_s": 10.0}
    row = {"spec": {"timeout_s": limit, "params": {"kind": "run"}}, "title": {"en": "Run 1", "zh-CN": "第 1 轮"}, "status": "collecting", "try_no": 1}
    for hours in (2, 8, 10):  # each time between two looks
        at = SimpleNamespace(now=began + timedelta(hours=hours), current=SimpleNamespace(**row, result=memo, expected_end_at=began))
        outcome = job_module._still_running(at, memo)
        assert outcome.trouble is None
        memo = {**outcome.step["result"], "ask_s": 10.0}
    assert 0 < memo["overtime_s"] < limit
