"""A soak that the host's reboot broke: its cause is recorded, both parties approve it, and the attempt is judged again from real evidence."""

from __future__ import annotations

import re

import pytest
import typer
import yaml
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.attempts.conclude import conclude
from app.attempts.judging import judge_again
from app.attempts.models import Attempt
from app.attempts.repository import steps_of
from app.attempts.usecases import attempt_view, claim_cause, start_attempt
from app.audit.models import AuditRow
from app.engagements.usecases import overview
from app.evidence import repository, store
from app.evidence.judgement import judge_attempt
from app.evidence.usecases import inputs
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Refused
from app.reports.usecases import print_again
from tests.bundles import g4_evidence, soak_plan, told_again
from tests.bundles.evidence import ATTEMPT, SEED
from tests.bundles.truth import SMALL, merged
from tests.integration.web_client import Browser, Robot
from tests.people import Cast
from tests.scenes import DEMO, bring, decide, engage, run, within
from tests.unit.gates.test_soak_clock import SECOND, reboot

EVENT = f"boot:{SECOND}"
FAST = {"rig": {"simulated": True, "time_scale": "3600"}, "g4": {"duration": "24 h", "gap_max": "30 min", "leak": {"warmup": "4 h"}}}


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """The evidence of 30 hours with a reboot at the fifth, made once."""
    evidence = g4_evidence(plan=soak_plan(), hours=30)
    reboot(5)(evidence)
    told_again(evidence)
    return evidence.files


def soaked(s: Session, cast: Cast, files: dict[str, bytes]) -> Attempt:
    """Bring an engagement to the end of its soak: judged by the engine, report printed."""
    data = yaml.safe_load(DEMO)
    data["plan"] = merged(SMALL, FAST)
    engagement = engage(s, cast, yaml.safe_dump(data, allow_unicode=True))
    for gate in ("G1", "G2", "G3"):
        run(s, cast, engagement, gate)
    attempt = start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)
    attempt.seed = SEED
    for path, content in files.items():
        if not path.endswith("inputs.json"):
            bring(s, attempt, path, content.replace(ATTEMPT.encode(), attempt.id.encode()))
    attempt.status = "running"
    conclude(s, attempt, judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM).document)
    attempt.status, attempt.next_due_at = "finished", None
    s.flush()
    print_again(within(s), attempt_id=attempt.id, actor=cast.li_wei)
    return attempt


def test_from_the_reboot_to_the_pass_by_an_approved_cause(cast: Cast, files: dict[str, bytes]) -> None:
    with write_session() as s:
        attempt = soaked(s, cast, files)
        assert attempt.verdict == "inconclusive"
        shown = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)["causes"]
        assert [(c["event"], c["cause"], c["approved"]) for c in shown] == [(EVENT, None, False)]

        claim_cause(s, attempt_id=attempt.id, event=EVENT, kind="power", text="B 路断电", actor=cast.li_wei)
        assert inputs(s, attempt.id)["rig_causes"][0]["missing"] == ["vendor", "customer"]
        decide(s, "soak_cause", cast.chen_jing)
        assert (attempt.verdict, len(attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)["revisions"])) == ("inconclusive", 1)
        decide(s, "soak_cause", cast.wang_fang)
        assert attempt.verdict == "inconclusive"  # judged when the second approval is committed, so that nobody waits for its transaction

    with write_session() as s:
        attempt = s.get_one(Attempt, attempt.id)
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
        assert (attempt.verdict, view["verdict"]) == ("pass", "pass")
        assert [r["verdict"] for r in view["revisions"]] == ["inconclusive", "pass"]
        assert ("g4.clock_restarts", "inconclusive", "pass") in [(c["check"], c["from"], c["to"]) for c in view["revisions"][1]["changed"]]
        assert "Cause of an event" in view["revisions"][1]["why"]["en"]
        assert "Cause" not in view["revisions"][1]["why"]["zh-CN"]
        assert view["causes"][0]["approved"] is True
        assert {r["revision"] for r in view["reports"]} == {1}  # the first issue, printed as R0, is named by the second
        told = repository.file_at(s, attempt.id, "evidence/inputs.json")
        assert told is not None
        assert b"B \xe8\xb7\xaf" in store.read(told.sha256)
        gate = next(g for g in overview(s, engagement_id=attempt.engagement_id, actor=cast.viewer)["gates"] if g["gate"] == "G4")
        assert gate["state"] == "sign_off"


@pytest.mark.parametrize(("failed", "verdict"), [("report", "pass"), ("soak", "inconclusive")])
def test_an_attempt_whose_report_alone_failed_was_not_interrupted(cast: Cast, files: dict[str, bytes], failed: str, verdict: str) -> None:
    with write_session() as s:
        attempt = soaked(s, cast, files)
        for step in steps_of(s, attempt.id):
            step.status = "failed" if step.key == failed else "done"
        attempt.status = "error"
        claim_cause(s, attempt_id=attempt.id, event=EVENT, kind="power", text="B 路断电", actor=cast.li_wei)
        decide(s, "soak_cause", cast.chen_jing, cast.wang_fang)
    with read_session() as s:
        assert s.get_one(Attempt, attempt.id).verdict == verdict


def test_another_text_is_another_claim_and_an_agreed_one_stays(cast: Cast, files: dict[str, bytes]) -> None:
    with write_session() as s:
        attempt = soaked(s, cast, files)
        claim_cause(s, attempt_id=attempt.id, event=EVENT, kind="power", text="B 路断电", actor=cast.li_wei)
        decide(s, "soak_cause", cast.chen_jing)
        claim_cause(s, attempt_id=attempt.id, event=EVENT, kind="maintenance", text="内核升级", actor=cast.zhao_lei)
        decide(s, "soak_cause", cast.wang_fang)
        assert attempt.verdict == "inconclusive"
        assert inputs(s, attempt.id)["rig_causes"][0]["missing"] == ["vendor"]
        decide(s, "soak_cause", cast.chen_jing)
    with write_session() as s:
        assert s.get_one(Attempt, attempt.id).verdict == "pass"
        with pytest.raises(Refused, match="does not change any more"):
            claim_cause(s, attempt_id=attempt.id, event=EVENT, kind="power", text="又一个说法", actor=cast.li_wei)


def test_a_cause_is_for_an_event_that_the_verdict_names(cast: Cast, files: dict[str, bytes]) -> None:
    with write_session() as s:
        attempt = soaked(s, cast, files)
        with pytest.raises(BadInput) as caught:
            claim_cause(s, attempt_id=attempt.id, event="boot:elsewhere", kind="weather", text="不明原因", actor=cast.li_wei)
        assert [e.pointer for e in caught.value.errors] == ["/event", "/kind"]


def test_an_approval_stands_when_the_evidence_cannot_be_had_and_the_attempt_is_judged_again_later(cast: Cast, files: dict[str, bytes]) -> None:
    with write_session() as s:
        attempt = soaked(s, cast, files)
        claim_cause(s, attempt_id=attempt.id, event=EVENT, kind="power", text="B 路断电", actor=cast.li_wei)
        lost = store.path_of(repository.file_at(s, attempt.id, "evidence/soak/gpu01/events.jsonl").sha256)
        kept = lost.read_bytes()
        lost.unlink()
        decide(s, "soak_cause", cast.chen_jing, cast.wang_fang)
    with write_session() as s:
        attempt = s.get_one(Attempt, attempt.id)
        failed = s.execute(select(AuditRow).where(AuditRow.action == "attempt.judge_failed")).scalars().all()
        assert (attempt.verdict, len(failed)) == ("inconclusive", 1)
        lost.write_bytes(kept)
        judge_again(within(s), attempt_id=attempt.id, why="events.jsonl is back", actor=cast.li_wei)
        assert attempt.verdict == "pass"


def test_the_pages_and_rest_go_the_same_way(cast: Cast, files: dict[str, bytes]) -> None:
    with write_session() as s:
        attempt_id = soaked(s, cast, files).id
    engineer, robot = Browser("li.wei"), Robot(cast.li_wei.user_id)
    page = engineer.get(f"/attempts/{attempt_id}").text
    assert EVENT in page
    assert "Record the cause" in page
    answer = engineer.send(f"/attempts/{attempt_id}/causes", event=EVENT, kind="power", text="feed B was lost")
    assert answer.status_code == 303, answer.text
    listed = robot.get(f"/attempts/{attempt_id}/causes").json()["items"]
    assert (listed[0]["cause"]["text"], listed[0]["missing"]) == ("feed B was lost", ["vendor", "customer"])
    assert robot.post(f"/attempts/{attempt_id}/causes", {"event": EVENT, "kind": "power", "text": "feed A and B"}).status_code == 201
    with write_session() as s:
        decide(s, "soak_cause", cast.chen_jing, cast.wang_fang)
    told = robot.get(f"/attempts/{attempt_id}/judgements").json()["items"]
    assert [t["verdict"] for t in told] == ["inconclusive", "pass"]
    again = robot.post(f"/attempts/{attempt_id}/judgements", {"why": "to be sure"})
    assert (again.status_code, [t["changed"] for t in again.json()["items"]][-1]) == (201, [])
    assert engineer.send(f"/attempts/{attempt_id}/judgements", why="once more").status_code == 303
    assert len(robot.get(f"/attempts/{attempt_id}/judgements").json()["items"]) == 4
    assert Robot(cast.viewer.user_id).post(f"/attempts/{attempt_id}/judgements").status_code == 403
    silent = engineer.send(f"/attempts/{attempt_id}/judgements", why=" ")
    assert silent.status_code == 422
    assert "the reason is missing" in silent.text
    assert len(robot.get(f"/attempts/{attempt_id}/judgements").json()["items"]) == 4
    page = engineer.get(f"/attempts/{attempt_id}").text
    assert "needed, and stands in the history" in page
    assert [reason in page for reason in ("Reason: to be sure", "Reason: once more")] == [True, True]
    chinese = Browser("li.wei", language="zh-CN").get(f"/attempts/{attempt_id}").text
    assert "重新判定" in chinese
    assert "必填，列入历史记录" in chinese


def test_the_command_line_asks_why_at_a_terminal_and_prints_the_history_with_its_reasons(
    cast: Cast, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer.testing import CliRunner

    from app.commands import attempt as command

    with write_session() as s:
        attempt_id = soaked(s, cast, files).id
    runner = CliRunner()
    app = typer.Typer()
    command.register(app)
    runner.invoke(app, ["attempt", "judge", attempt_id, "--lang", "en"])
    runner.invoke(app, ["attempt", "judge", attempt_id, "--why", "a newer judge", "--lang", "en"])
    monkeypatch.setattr(command, "_at_a_terminal", lambda: True)
    asked = runner.invoke(app, ["attempt", "judge", attempt_id, "--lang", "en"], input="the clock was mended\n")
    assert "Why is it judged again?" in asked.output
    history = [line for line in asked.output.splitlines() if re.match(r"\d+  ", line)]
    assert [line.partition("  ")[0] for line in history] == ["1", "2", "3", "4"]
    assert "no reason was given" not in history[0]  # the engine's own, at the end of the run
    assert "no reason was given" in history[1]
    assert "a newer judge" in history[2]
    assert "the clock was mended" in history[3]
