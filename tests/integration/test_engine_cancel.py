"""A cancel keeps what was said until then, ends what can be reached, and lists host by host what it could not end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select

from app.attempts.models import Step, StepEvent
from app.attempts.usecases import attempt_view
from app.engine import events, marker, runs, words
from app.engine.shutdown import cancel_running
from app.engine.steps import cancel
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.settings import settings
from app.up.ending import STOPPED
from gates.text import Text
from tests.engine_kit import LOCAL, PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, playbook_step, steps_of, wait_for
from tests.people import Cast


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


def test_what_a_canceled_playbook_said_before_its_end_is_stored_too() -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 60}))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "starting")
    said = runs.folder_of(attempt_id, "survey", "run-1") / "events.jsonl"
    wait_for(lambda: any(event["data"].get("task") == "work" for event in events.read_new(said, 0)[0]))
    cancel_running(STOPPED)  # before the engine has looked again
    assert drive(attempt_id, until=ended).status == "canceled"
    with read_session() as s:
        stored = set(s.scalars(select(StepEvent.uuid).where(StepEvent.attempt_id == attempt_id, StepEvent.run == "run-1")))
    written = {event["uuid"] for event in events.read_new(said, 0)[0]}
    assert stored == written != set()
    wait_for(lambda: marker.carriers(attempt_id) == [])


def test_a_stop_that_runs_out_of_time_names_who_did_not_answer_and_keeps_what_the_others_said(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = {name: {**LOCAL["gpu01"]} for name in ("gpu01", "gpu02", "gpu03")}
    attempt_id = make_attempt(job_step(), hosts=hosts)
    drive(attempt_id, until=lambda a: a.status == "running")
    with write_session() as s:
        step = s.get_one(Step, steps_of(attempt_id)[0].id)
        step.status, step.job_id = "stopping", f"{attempt_id}-run-1"
        step.result = {"run": "stop-1", "runs": {"stop": 1}, "since": now().isoformat()}
    folder = runs.folder_of(attempt_id, "run-1", "stop-1")
    folder.mkdir(parents=True)
    answers = {"gpu01": {"state": "stopped"}, "gpu03": {"state": "running", "could_not_stop": ["The job x goes on: it did not end."]}}
    with (folder / "events.jsonl").open("w") as file:
        for host, reply in answers.items():
            data = {"host": host, "task": "reply", "res": {"stdout": json.dumps(reply)}}
            event = {"uuid": host, "counter": 1, "event": "runner_on_ok", "created": "", "stdout": "", "data": data}
            file.write(json.dumps(event) + "\n")
    for name in ("lock", "started"):
        (folder / name).touch()
    late = cancel.drive.failed(words.timed_out(Text("run-1", "run-1"), 24))
    monkeypatch.setattr(cancel.drive, "follow", lambda ctx, order: late)
    cancel_running(STOPPED)
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.problem and attempt.problem["code"]) == ("canceled", "not_stopped")
    assert attempt.problem is not None
    assert "The host gpu02 (local) did not answer in time" in attempt.problem["en"]
    assert "On gpu03 something still runs: The job x goes on" in attempt.problem["en"]
    assert "主机 gpu02（local）未在限时内应答" in attempt.problem["zh-CN"]
    assert "gpu01" not in attempt.problem["en"]


def test_what_goes_on_is_listed_host_by_host_with_what_the_host_said(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 60, "lines": 60}), hosts=LOCAL)
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status != "pending")
    real = cancel.drive.follow

    def told(ctx, order):  # as the stop of the product's own playbook answers
        found = real(ctx, order)
        if isinstance(found, cancel.drive.Ended):
            found.result["replies"] = {"gpu01": {"state": "running", "could_not_stop": ["The job x-soak goes on: it did not end"]}}
        return found

    monkeypatch.setattr(cancel.drive, "follow", told)
    cancel_running(STOPPED)
    attempt = drive(attempt_id, until=ended)
    assert attempt.status == "canceled"
    assert attempt.problem is not None
    for language in ("en", "zh-CN"):
        assert "gpu01" in attempt.problem[language]
        assert "The job x-soak goes on" in attempt.problem[language]
    assert attempt_of(attempt_id).lease_owner is None
    with read_session() as s:  # why it was canceled, and what goes on, in the reader's language alone
        view = attempt_view(s, attempt_id=attempt_id, actor=cast.admin)
    assert view["cancel_reason"] == STOPPED.json()
    reason = view["transitions"][-1]["reason"]
    assert reason["en"].startswith("The service was stopped. ")
    assert reason["zh-CN"].startswith("服务已停止。 ")
    assert "service" not in reason["zh-CN"]
