"""An attempt counts before a job that measures is ordered, whatever becomes of the answer; only a target's proof takes it back (DESIGN 4.11)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.attempts.models import Attempt
from app.engine import counting, reconcile
from app.engine.advance import advance
from app.engine.outcome import Outcome
from app.kit.clock import now
from app.kit.db import write_session
from app.settings import settings
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, playbook_step, steps_of

STOP = Path(__file__).parent.parent.parent / "playbooks" / "roles" / "arm" / "files" / "stop.py"
JOB_START = Path(__file__).parent.parent.parent / "playbooks" / "job_start.yml"


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


def measured_step(**spec: Any) -> Any:
    return job_step(params={"kind": "run", "seconds": 60, "lines": 5}, **spec)


def cancel(attempt_id: str) -> Attempt:
    with write_session() as s:
        s.get_one(Attempt, attempt_id).cancel_requested_at = now()
    return drive(attempt_id, until=ended)


def one_move(attempt_id: str) -> None:
    assert advance(attempt_id, attempt_of(attempt_id).generation)


def test_it_counts_before_the_order_goes_out_and_a_step_that_measures_nothing_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ordered: list[str] = []

    def begin(ctx: Any, order: Any, memo: Any = None, **step: Any) -> Outcome:
        ordered.append(ctx.current.key)
        assert ctx.attempt.counted_at is not None or not ctx.current.spec["measured"]
        return Outcome(due_s=3600.0, step={"status": "starting"})

    monkeypatch.setattr("app.engine.drive.begin", begin)
    unmeasured, attempt_id = make_attempt(playbook_step()), make_attempt(measured_step())
    for one in (unmeasured, attempt_id):
        one_move(one)  # queued -> running
    one_move(unmeasured)
    assert (ordered, attempt_of(unmeasured).counted_at) == (["survey"], None)
    one_move(attempt_id)
    assert (attempt_of(attempt_id).counted_at is not None, ordered) == (True, ["survey"])
    one_move(attempt_id)
    assert ordered == ["survey", "run-1"]


def test_a_start_whose_answer_is_lost_three_times_leaves_a_counted_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.engine.runs import Look, RunState

    monkeypatch.setattr("app.engine.runs.start", lambda run: (run.folder.mkdir(parents=True, exist_ok=True), RunState(Look.ALIVE))[1])
    monkeypatch.setattr("app.engine.runs.look", lambda folder: RunState(Look.LOST))
    monkeypatch.setattr("app.engine.runs.clean", lambda *a: 0)
    attempt_id = make_attempt(measured_step())
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem["code"]) == ("error", "run_lost")
    assert attempt.counted_at is not None


def test_a_cancel_between_the_order_and_its_report_leaves_a_counted_attempt() -> None:
    attempt_id = make_attempt(measured_step())
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "starting")
    attempt = cancel(attempt_id)
    assert attempt.status == "canceled"
    assert attempt.counted_at is not None


RESULT: dict[str, Any] = {"status": "failed", "rc": 2, "stats": {"ok": {"gpu01": 2}, "failures": {"gpu01": 1}}}


@pytest.mark.parametrize(
    ("result", "proven"),
    [
        (RESULT | {"failures": [{"host": "gpu01", "task": "arm : Switch this host to the arm"}]}, True),
        (RESULT | {"failures": [{"host": "gpu01", "task": "Hand the job to the probe"}]}, False),
        (RESULT | {"failures": [{"host": "gpu01", "task": "reply"}]}, False),
        (RESULT | {"failures": [{"host": "gpu01", "task": ""}]}, False),
        (RESULT | {"failures": []}, False),
        (RESULT | {"failures": [{"host": "gpu02", "task": "Switch this host to the arm"}]}, False),
        ({**RESULT, "stats": {}, "failures": [{"host": "gpu01", "task": "Switch this host to the arm"}]}, False),
        ({"status": "timeout", "rc": 1, "stats": {}, "failures": []}, False),
        ({"status": "successful", "rc": 0, "stats": {"ok": {}}}, True),
        ({"status": "successful", "rc": 0, "stats": {"ok": {"gpu01": 3}}}, False),
    ],
)
def test_only_a_host_that_stopped_before_the_job_was_handed_over_proves_that_it_has_none(result: dict[str, Any], proven: bool) -> None:
    assert reconcile.never_handed_over(result, "gpu01") is proven
    memo = {counting.MINE: True}
    assert counting.after_failed_start(result, memo, ["gpu01"]) == ({"counted_at": None} if proven else {})
    if result["status"] != "successful":  # nothing is known of a host that the play never reached
        assert counting.after_failed_start(result, memo, ["gpu01", "gpu09"]) == {}
    assert counting.after_failed_start(result, memo, []) == {}
    for doubt in ({}, {**memo, counting.DOUBT: True}, {**memo, "lost": 1}):
        assert counting.after_failed_start(result, doubt, ["gpu01"]) == {}


def test_the_real_playbook_hands_over_in_the_task_that_the_engine_knows() -> None:
    import yaml

    attendant, play = yaml.safe_load(JOB_START.read_text(encoding="utf-8"))
    assert [task["name"] for task in play["tasks"]] == list(reconcile.HANDS_OVER)
    assert not play.get("strategy")  # linear: a host that failed never gets to a later task
    assert (attendant["hosts"], attendant["any_errors_fatal"]) == ("attended", True)  # no attendant, no job: app/engine/steps/job.py relies on it


def test_a_start_that_failed_before_the_hand_over_counts_no_more_and_counts_again_when_retried(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = state / "playbooks"
    folder.mkdir()
    start = {"hosts": "loadgen", "gather_facts": False, "tasks": [{"name": "Switch this host to the arm", "ansible.builtin.command": "false"}]}
    (folder / "job_start.yml").write_text(json.dumps([start]))
    monkeypatch.setattr(settings(), "playbook_dir", folder)
    attempt_id = make_attempt(measured_step())
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem["code"], attempt.counted_at) == ("error", "task_failed", None)
    with write_session() as s:
        row = s.get_one(Attempt, attempt_id)
        row.status, row.next_due_at = "running", now()
    one_move(attempt_id)
    assert attempt_of(attempt_id).counted_at is not None


@pytest.mark.parametrize(
    ("replies", "more", "taken_back"),
    [
        ({"gpu01": {"measured": False}}, {}, True),
        ({"gpu01": {"measured": True}}, {}, False),
        ({"gpu01": {"measured": None}}, {}, False),
        ({"gpu01": {}}, {}, False),
        ({}, {}, False),
        ({"gpu01": {"measured": False}}, {"in_flight": True}, False),
        ({"gpu01": {"measured": False}}, {"judged": True}, False),
    ],
)
def test_after_a_cancel_every_host_must_say_that_it_measured_nothing(replies: dict[str, Any], more: dict[str, bool], taken_back: bool) -> None:
    class Row:
        result: dict[str, Any] = {counting.MINE: True}  # noqa: RUF012

    asked = {"in_flight": False, "judged": False, **more}
    assert counting.after_stop([Row()], replies, ["gpu01"], **asked) == ({"counted_at": None} if taken_back else {})
    assert counting.after_stop([Row()], replies, ["gpu01", "gpu02"], **asked) == {}
    Row.result = {}
    assert counting.after_stop([Row()], replies, ["gpu01"], **asked) == {}


def test_a_host_that_lost_a_job_which_it_had_proves_nothing_and_the_attempt_counts() -> None:
    class Row:
        job_id = "A-run-1"
        result: dict[str, Any] = {counting.MINE: True, counting.SINCE: "2026-11-30T00:00:00+00:00", "hosts": ["gpu01"]}  # noqa: RUF012

    for known, taken_back in ((["A-run-1"], {"counted_at": None}), ([], {}), (None, {}), (["A-run-2"], {})):
        replies = {"gpu01": {"measured": False, "known": known}}
        assert counting.after_stop([Row()], replies, ["gpu01"], in_flight=False, judged=False) == taken_back


@pytest.mark.parametrize(
    ("phases", "more", "measured"),
    [
        (None, (), False),  # a folder, and no job in it
        (None, ("started",), True),
        (["store"], ("started", "exit.json"), False),
        (["store", "cool", "warmup"], ("started", "exit.json"), False),
        (["store", "cool"], ("started",), True),  # killed: what came last was not written
        (["store", "cool", "measure"], ("started", "exit.json"), True),
        (["store", "soak"], ("started", "exit.json"), True),
        (["torn"], ("started", "exit.json"), True),
    ],
)
def test_a_target_tells_by_its_journals_whether_it_measured(tmp_path: Path, phases: list[str] | None, more: tuple[str, ...], measured: bool) -> None:
    job = tmp_path / "jobs" / "A-run-1"
    job.mkdir(parents=True)
    (tmp_path / "jobs" / "B-run-1").mkdir()
    (tmp_path / "jobs" / "B-run-1" / "started").touch()  # another attempt's
    if phases is not None:
        lines = [json.dumps({"phase": name}) if name != "torn" else '{"phase": ' for name in phases]
        (job / "phases.jsonl").write_text("\n".join(lines) + "\n")
    for name in more:
        (job / name).touch()
    told = subprocess.run(
        [sys.executable, str(STOP), str(tmp_path / "none.pyz"), str(tmp_path), "A", "1"], capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout)["measured"] is measured
    assert json.loads(told.stdout)["known"] == ["A-run-1"]
