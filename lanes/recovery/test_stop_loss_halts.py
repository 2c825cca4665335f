"""A fail that stops the engagement ends what the failed attempt left on its targets, by host, and then prints the report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.attempts.usecases import attempt_view
from app.engagements.models import Engagement
from app.engine import runs
from app.kit.db import read_session, write_session
from app.settings import settings
from gates.steps import judge_step, report_step
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, steps_of
from tests.people import Cast

LEFT = """
- name: Say what goes on
  hosts: loadgen
  gather_facts: false
  tasks:
    - name: reply
      ansible.builtin.debug:
        msg: {{state: {state}, could_not_stop: {left}}}
"""


@pytest.fixture
def site(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in PLAYBOOKS.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("{{ playbook_dir }}/..", str(PLAYBOOKS.parent)))
    monkeypatch.setattr(settings(), "playbook_dir", tmp_path)
    monkeypatch.setattr("app.reports.usecases.render", lambda _begin, *, attempt_id, language: SimpleNamespace(id=language))
    return tmp_path


def judged(monkeypatch: pytest.MonkeyPatch, verdict: str, state: str) -> str:
    """An attempt with one job that is judged so, in an engagement that comes to be in that state by it."""
    told: dict[str, Any] = {"schema": 1, "gate": "G2", "verdict": verdict, "because": [], "checks": [], "manifest_hash": "sha256:" + "2" * 64}
    monkeypatch.setattr("gates.judge.judge", lambda bundle: {**told, "plan_hash": bundle.manifest["plan_hash"]})
    attempt_id = make_attempt(job_step(params={"kind": "run", "seconds": 1, "lines": 5}), judge_step(), report_step())
    drive(attempt_id, until=lambda a: a.verdict is not None)
    with write_session() as s:
        s.get_one(Engagement, attempt_of(attempt_id).engagement_id).state = state
    return attempt_id


def stops(attempt_id: str) -> list[str]:
    return [folder.name for folder in (settings().runs_dir / attempt_id).glob("report-stop-*")]


@pytest.mark.parametrize(("said", "left"), [("stopped", []), ("running", ["The engine goes on: it did not end"])])
def test_the_failed_attempts_own_engine_is_stopped_and_each_host_is_heard(
    cast: Cast, site: Path, monkeypatch: pytest.MonkeyPatch, said: str, left: list[str]
) -> None:
    (site / "stop.yml").write_text(LEFT.format(state=said, left=left))
    attempt_id = judged(monkeypatch, "fail", "stopped")
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.verdict, stops(attempt_id)) == ("finished", "fail", ["report-stop-1"])
    report = steps_of(attempt_id)[-1]
    assert (report.status, sorted(report.result["reports"])) == ("done", ["en", "zh-CN"])
    assert report.result["halt"]["hosts"] == {"gpu01": {"state": said, "why": " ".join(left)}}
    assert (report.problem or {}).get("code") == ("not_halted" if left else None)
    with read_session() as s:
        shown = attempt_view(s, attempt_id=attempt_id, actor=cast.viewer)["steps"][-1]
    assert (shown["halted"]["gpu01"]["state"], bool(shown["problem"])) == (said, bool(left))


def test_a_stop_that_fails_keeps_no_report_back(cast: Cast, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = judged(monkeypatch, "fail", "stopped")
    (site / "stop.yml").write_text((site / "fails.yml").read_text())
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, steps_of(attempt_id)[-1].result["halt"]["hosts"]["gpu01"]["state"]) == ("finished", "unknown")
    assert "gpu01" in steps_of(attempt_id)[-1].problem["en"]


@pytest.mark.parametrize(("verdict", "becomes"), [("fail", "active"), ("pass", "active"), ("inconclusive", "stopped")])
def test_nothing_is_stopped_where_no_fail_of_this_attempt_stopped_the_engagement(
    cast: Cast, site: Path, monkeypatch: pytest.MonkeyPatch, verdict: str, becomes: str
) -> None:
    attempt_id = judged(monkeypatch, verdict, becomes)
    assert drive(attempt_id, until=ended).status == "finished"
    assert stops(attempt_id) == []
    assert not runs.folder_of(attempt_id, "report", "stop-1").exists()
