"""An inconclusive G3 goes on with the planned run pairs: use cases, REST, pages, engine, evidence and both judgements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.attempts import layout, repository
from app.attempts import revisions as judgements
from app.attempts.conclude import conclude
from app.attempts.models import Attempt, Sample
from app.attempts.usecases import attempt_view, extend, request_cancel, samples, start_attempt
from app.audit.models import AuditRow
from app.engagements.models import Engagement
from app.engagements.usecases import overview
from app.engine import policy
from app.evidence.judgement import judge_attempt
from app.evidence.usecases import export_bundle, register
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.kit.errors import Forbidden, Refused
from app.reports.usecases import dataset
from app.settings import settings
from gates.bundle import read_bundle
from gates.g3.extension import FIRST_VERDICT
from gates.judge import judge
from gates.model import StepKind, StepSpec
from gates.plan import parse_plan
from gates.text import Text
from tests.bundles import Truth
from tests.bundles.gates import extended_evidence, g3_evidence
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, job_step, make_attempt, steps_of
from tests.integration.test_api import assert_problem
from tests.integration.web_client import Browser, Robot
from tests.people import Cast
from tests.scenes import bring, document, engage, run, within

WAY_ON = {"pairs": 2, "done": None, "may": True, "reason": {"en": "2 more run pairs can decide it.", "zh-CN": "可补充 2 个轮次对。"}}
CHECK = {"id": "g3.x", "title": {"en": "Drop", "zh-CN": "降幅"}, "verdict": "inconclusive", "severity": "blocking", "value": "1"}
BOTH = {"en": "Nothing was proven.", "zh-CN": "未能证明。"}
SUMMARY = {"summary": BOTH, "risk": BOTH, "not_tested": [], "figures": {}, "manifest_hash": "sha256:" + "2" * 64}
NEW = ["run-5", "run-6", "run-7", "run-8", "recompute-2", "judge-2", "report-2"]


def undecided(s: Session, cast: Cast, **more: Any) -> Attempt:
    """Bring an engagement to an inconclusive G3 that may be extended."""
    engagement = engage(s, cast)
    for gate in ("G1", "G2"):
        run(s, cast, engagement, gate)
    return run(s, cast, engagement, "G3", "inconclusive", **{"extension": WAY_ON, "checks": [CHECK], **SUMMARY, **more})


def conclude_again(s: Session, attempt: Attempt, verdict: str) -> None:
    """Judge all runs of an extended attempt, as its second judge step does, and let it finish."""
    told = document(attempt, verdict, checks=[{**CHECK, "verdict": verdict}], extension={**WAY_ON, "may": False, "done": {"pairs": 2}}, **SUMMARY)
    judgements.add(s, attempt_id=attempt.id, document=told, manifest_hash="sha256:" + "f" * 64, actor=SYSTEM)
    conclude(s, attempt, told)
    attempt.status, attempt.finished_at = "finished", now()
    s.flush()


def test_an_inconclusive_g3_refuses_a_new_attempt_and_goes_on_itself(cast: Cast) -> None:
    with write_session() as s:
        attempt = undecided(s, cast)
        shown = overview(s, engagement_id=attempt.engagement_id, actor=cast.li_wei)
        assert (shown["next"]["kind"], shown["next"]["attempt_id"], shown["next"]["enabled"]) == ("extend", attempt.id, True)
        with pytest.raises(Refused, match="extend it"):
            start_attempt(s, engagement_id=attempt.engagement_id, gate="G3", actor=cast.li_wei)
        first = judgements.newest(s, attempt.id)
        extend(s, attempt_id=attempt.id, said="双方同意补充", actor=cast.li_wei)
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
        used = next(g["attempts_used"] for g in overview(s, engagement_id=attempt.engagement_id, actor=cast.viewer)["gates"] if g["gate"] == "G3")
        rows = list(s.execute(select(AuditRow).where(AuditRow.object_id == attempt.id)).scalars())
    assert (view["status"], view["verdict"], view["finished_at"]) == ("running", None, None)
    assert [step["key"] for step in view["steps"]][-7:] == NEW
    assert (attempt.step_index, used) == (8, 1)
    assert view["document"]["verdict"] == "inconclusive"  # history: what it goes on from
    assert (view["extension"]["pairs"], view["extension"]["by"], view["extension"]["said"]) == (2, "李伟", "双方同意补充")
    assert (view["extension"]["from_verdict"], view["extension"]["judged"]) == (first.hash, None)
    assert view["transitions"][-1]["event"] == "extend"
    assert view["transitions"][-1]["reason"] == {"en": "By 2 run pairs: 双方同意补充", "zh-CN": "补充 2 个轮次对：双方同意补充"}
    assert [row.data["from_verdict"] for row in rows if row.action == "attempt.extension"] == [first.hash]


def test_the_second_verdict_is_a_revision_beside_the_first_and_only_then_a_new_attempt_may_start(cast: Cast) -> None:
    with write_session() as s:
        attempt = undecided(s, cast)
        extend(s, attempt_id=attempt.id, actor=cast.li_wei)
        conclude_again(s, attempt, "inconclusive")
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
        assert [r["verdict"] for r in view["revisions"]] == ["inconclusive", "inconclusive"]
        assert view["extension"]["judged"] == view["revisions"][1]["hash"]
        with pytest.raises(Refused, match="once already"):
            extend(s, attempt_id=attempt.id, actor=cast.li_wei)
        assert start_attempt(s, engagement_id=attempt.engagement_id, gate="G3", actor=cast.li_wei).number == 2


def test_a_pass_after_the_extension_shows_the_checks_that_changed(cast: Cast) -> None:
    with write_session() as s:
        attempt = undecided(s, cast)
        extend(s, attempt_id=attempt.id, actor=cast.li_wei)
        conclude_again(s, attempt, "pass")
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
    assert view["verdict"] == "pass"
    assert [(c["check"], c["from"], c["to"]) for c in view["revisions"][1]["changed"]] == [("g3.x", "inconclusive", "pass")]


def test_only_who_may_start_extends_and_what_pairs_cannot_answer_is_refused(cast: Cast) -> None:
    with write_session() as s:
        attempt = undecided(s, cast)
        with pytest.raises(Forbidden):
            extend(s, attempt_id=attempt.id, actor=cast.viewer)
        again = document(attempt, "inconclusive", extension={**WAY_ON, "may": False})
        conclude(s, attempt, again)  # judged again by other rules
        with pytest.raises(Refused, match="would not decide"):
            extend(s, attempt_id=attempt.id, actor=cast.li_wei)


def _sample(s: Session, attempt: Attempt, key: str) -> None:
    step = next(step for step in repository.steps_of(s, attempt.id) if step.key == key)
    step.status, step.started_at, step.finished_at = "done", now(), now()
    line = {"seq": 0, "phase": "measure", "tier": 8, "first_text_ns": 123456}
    s.add(Sample(attempt_id=attempt.id, step_id=step.id, stream="records", seq=0, data=line))
    s.flush()


def test_while_the_extension_runs_only_its_own_runs_are_sealed_and_stay_so_when_it_is_given_up(cast: Cast, tmp_path: Path) -> None:
    with write_session() as s:
        attempt = undecided(s, cast)
        _sample(s, attempt, "run-1")
        extend(s, attempt_id=attempt.id, actor=cast.li_wei)
        _sample(s, attempt, "run-5")

        def figures() -> tuple[list[bool], list[bool], bool]:
            view = attempt_view(s, attempt_id=attempt.id, actor=cast.admin)
            rows = samples(s, attempt_id=attempt.id, after=0, limit=10, actor=cast.admin)
            steps = {step["key"]: step for step in view["steps"]}
            return (
                ["first_text_ns" in row["data"] for row in rows],
                [steps[key]["finished_at"] is not None for key in ("run-1", "run-5")],
                view["sealed_figures"],
            )

        assert figures() == ([True, False], [True, False], True)
        request_cancel(s, attempt_id=attempt.id, reason="the array was taken away", actor=cast.li_wei)
        attempt.status, attempt.verdict, attempt.because = "canceled", "inconclusive", []  # as the engine leaves it
        s.flush()
        assert figures() == ([True, False], [True, False], True)
        with pytest.raises(Refused, match="still going on"):
            judge_attempt(within(s), attempt_id=attempt.id, actor=cast.li_wei)
        after = start_attempt(s, engagement_id=attempt.engagement_id, gate="G3", actor=cast.li_wei)
        assert figures()[2] is True
        after.status, after.verdict = "finished", "pass"  # the gate is over
        judgements.add(s, attempt_id=after.id, document=document(after, "pass"), manifest_hash="sha256:" + "0" * 64, actor=SYSTEM)
        s.flush()
        assert figures() == ([True, True], [True, True], False)


@pytest.mark.parametrize("status", ["canceled", "error"])
def test_a_g3_that_ended_without_a_judgement_never_compares_the_arms(cast: Cast, status: str, tmp_path: Path) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        attempt = start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)
        _sample(s, attempt, "run-1")
        attempt.status, attempt.finished_at = status, now()
        s.flush()
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.admin)
        rows = samples(s, attempt_id=attempt.id, after=0, limit=10, actor=cast.admin)
        assert (view["sealed_figures"], view["document"], view["steps"][0]["finished_at"]) == (True, None, None)
        assert rows[0]["data"] == {"seq": 0, "phase": "measure", "tier": 8, "error": None}
        with pytest.raises(Refused, match="handed out when it is judged"):
            export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "peek.zip", actor=cast.admin)
        with pytest.raises(Refused):
            judge_attempt(within(s), attempt_id=attempt.id, actor=cast.li_wei)


def test_the_api_extends_once_and_refuses_with_a_problem(cast: Cast) -> None:
    with write_session() as s:
        attempt_id = undecided(s, cast).id
    robot = Robot(cast.li_wei.user_id)
    path = f"/attempts/{attempt_id}/extend"
    assert_problem(Robot(cast.viewer.user_id).post(path), 403, "not_permitted")
    assert_problem(robot.post(path, json={"pairs": 20}), 422, "bad_request")
    first = robot.post(path, json={"said": "agreed"}, Idempotency_Key="extend-it-once")
    assert first.status_code == 202, first.text
    assert (first.json()["status"], first.json()["extension"]["pairs"]) == ("running", 2)
    again = robot.post(path, json={"said": "agreed"}, Idempotency_Key="extend-it-once")
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert_problem(robot.post(path), 409, "extended_already")
    verdict = robot.get(f"/attempts/{attempt_id}/verdict").json()
    assert (verdict["verdict"], verdict["extension"]["judged"]) == ("inconclusive", None)


@pytest.mark.parametrize(
    ("language", "button", "told"), [("en", "Extend by 2 run pairs", "Verdict before the extension"), ("zh_CN", "补充 2 个轮次对", "补充前的判定")]
)
def test_the_pages_offer_the_extension_and_say_what_it_goes_on_from(cast: Cast, language: str, button: str, told: str) -> None:
    with write_session() as s:
        attempt = undecided(s, cast, checks=[])
        attempt_id, engagement_id = attempt.id, attempt.engagement_id
    browser = Browser("li.wei", language)
    assert f'action="/attempts/{attempt_id}/extend"' in browser.get(f"/engagements/{engagement_id}").text
    assert button in browser.get(f"/attempts/{attempt_id}").text
    assert browser.send(f"/attempts/{attempt_id}/extend", said="ok <b>").status_code == 303
    page = browser.get(f"/attempts/{attempt_id}").text
    assert told in page
    assert "ok &lt;b&gt;" in page
    assert 'id="extend"' not in page
    refused = browser.send(f"/attempts/{attempt_id}/extend")
    assert (refused.status_code, 'data-code="extended_already"' in refused.text or "extended_already" in refused.text) == (409, True)


# The engine, with jobs as small as they get.


def judge_step(key: str = "judge") -> StepSpec:
    return StepSpec(key=key, kind=StepKind.JUDGE, title=Text(key, key))


def tiny(key: str, seconds: float = 0.5, **spec: Any) -> StepSpec:
    return job_step(key, params={"kind": "run", "seconds": seconds, "lines": 5}, **spec)


@pytest.fixture
def main_gate(state: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Let the kit's jobs be runs of a main gate whose judge is undecided at first; returns what each judgement was told."""
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
    monkeypatch.setattr(policy, "RUN_AGAIN_MIN_S", 0.2)
    seen: list[dict[str, Any]] = []

    def stub(bundle: Any) -> dict[str, Any]:
        seen.append({"inputs": bundle.inputs, "files": set(bundle.files)})
        extended = bundle.inputs["extension"] is not None
        verdict = "pass" if extended else "inconclusive"
        told = {"schema": 1, "gate": "G3", "verdict": verdict, "because": [], "plan_hash": bundle.manifest["plan_hash"], "checks": [], **SUMMARY}
        return {**told, "manifest_hash": bundle.manifest_hash, "extension": {**WAY_ON, "may": not extended}}

    monkeypatch.setattr("gates.judge.judge", stub)
    return seen


def first_part() -> str:
    """Drive a main gate of one tiny run to its inconclusive verdict."""
    attempt_id = make_attempt(tiny("run-1"), judge_step())
    with write_session() as s:
        s.get_one(Attempt, attempt_id).gate = "G3"
        s.get_one(Engagement, attempt_of(attempt_id).engagement_id).people = {}
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.verdict) == ("finished", "inconclusive")
    return attempt_id


def go_on(attempt_id: str, monkeypatch: pytest.MonkeyPatch, *specs: StepSpec) -> None:
    monkeypatch.setattr(layout, "extension_for", lambda plan, gate: list(specs))
    monkeypatch.setattr("app.attempts.extend.access.find_attempt", _found)
    monkeypatch.setattr("app.attempts.extend.may_extend", lambda facts, attempt_id: None)  # its G1 and G2 were never made
    with write_session() as s:
        extend(s, attempt_id=attempt_id, actor=SYSTEM)


def _found(s: Session, attempt_id: str, actor: Any, *, lock: bool = False) -> tuple[Attempt, Engagement]:
    attempt = s.get_one(Attempt, attempt_id)
    return attempt, s.get_one(Engagement, attempt.engagement_id)


def test_the_engine_runs_the_new_runs_and_judges_old_and_new_evidence_together(
    main_gate: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = first_part()
    go_on(attempt_id, monkeypatch, tiny("run-2"), judge_step("judge-2"))
    attempt = drive(attempt_id, until=ended)
    first, second = main_gate
    assert (attempt.status, attempt.verdict, attempt.extension["judged"] is not None) == ("finished", "pass", True)
    assert [(step.key, step.status) for step in steps_of(attempt_id)] == [(k, "done") for k in ("run-1", "judge", "run-2", "judge-2")]
    assert (first["inputs"]["extension"], first["files"] < second["files"]) == (None, True)
    assert {path.split("/")[1] for path in second["files"]} == {"inputs.json", "run-1", "run-2", "extension"}
    with read_session() as s:
        before, after = judgements_of(s, attempt_id)
    assert (before.verdict, after.verdict) == ("inconclusive", "pass")
    assert second["inputs"]["extension"]["from_verdict"] == before.hash
    assert second["inputs"]["extension"]["from_manifest"] == before.manifest_hash != after.manifest_hash


def judgements_of(s: Session, attempt_id: str) -> list[Any]:
    return repository.verdicts_of(s, attempt_id)


def test_an_extension_that_is_canceled_leaves_the_verdict_that_it_went_on_from(
    main_gate: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt_id = first_part()
    go_on(attempt_id, monkeypatch, tiny("run-2", seconds=60), judge_step("judge-2"))
    drive(attempt_id, until=lambda a: steps_of(a.id)[2].status == "running")
    with write_session() as s:
        s.get_one(Attempt, attempt_id).cancel_requested_at = now()
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, attempt.verdict, attempt.extension["judged"]) == ("canceled", "inconclusive", None)
    assert (attempt.counted_at is not None, len(main_gate)) == (True, 1)


# Real evidence, the real judge.


def test_real_evidence_of_both_parts_is_judged_pooled_and_offline_again(cast: Cast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.bundles.evidence import HOST, SEED
    from tests.bundles.truth import SMALL, merged

    band = {"g3": {"throughput_gain_band": {"low": "0.1", "high": "0.8"}}}
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        attempt = start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)
        plan = parse_plan(merged(SMALL, band, {"rig": {"simulated": True}}))
        _use_plan(s, attempt, plan)
        attempt.seed = SEED
        for module in ("tests.bundles.evidence", "tests.bundles.job"):
            monkeypatch.setattr(f"{module}.ATTEMPT", attempt.id)
        truth = Truth(drop=0.33, baseline_runs=(1.0, 1.06))
        evidence = g3_evidence(truth, plan)
        told = json.loads(evidence.files["evidence/inputs.json"])
        engagement.g2_baseline = {**told["g2_baseline"], "attempt": "-"}
        engagement.targets = {**engagement.targets, "hosts": {HOST: {"groups": ["engine", "loadgen"]}}}
        _bring_all(s, attempt, evidence.files)
        first = judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM)
        conclude(s, attempt, first.document)
        attempt.status = "finished"
        s.flush()
        assert (first.verdict, first.document["extension"]["may"]) == ("inconclusive", True), first.document["summary"]["en"]
        extend(s, attempt_id=attempt.id, actor=cast.li_wei)
        _bring_all(s, attempt, extended_evidence(truth, plan, first.document).files)
        second = judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM)
        conclude(s, attempt, second.document)
        attempt.status = "finished"
        s.flush()
        export_bundle(s, attempt_id=attempt.id, dest=tmp_path / "bundle.zip", actor=cast.li_wei)
        printed = dataset(s, attempt_id=attempt.id, language="zh-CN")
        with pytest.raises(Refused, match="closed"):
            bring(s, attempt, f"evidence/run-5/{HOST}/late.json", b"{}")
    bundle = read_bundle(tmp_path / "bundle.zip")
    assert second.verdict == "pass", second.document["summary"]["en"]
    assert (second.document["decision"]["pairs"], second.document["extension"]["done"]["from_verdict"]) == (4, first.hash)
    assert judge(bundle) == second.document == bundle.stored_verdict
    assert json.loads(bundle.text(FIRST_VERDICT)) == first.document
    assert "补充 2 个轮次对" in printed["extension"]["sentence"]
    assert printed["extension"]["why"] == first.document["summary"]["zh-CN"]
    assert [j["verdict"] for j in printed["judgements"]] == ["inconclusive", "pass"]
    assert printed["judgements"][1]["changed"]


def test_evidence_of_the_first_runs_is_closed_while_the_extension_runs(cast: Cast) -> None:
    from app.evidence import store

    with write_session() as s:
        attempt = undecided(s, cast)
        extend(s, attempt_id=attempt.id, actor=cast.li_wei)
        steps = {step.key: step.id for step in repository.steps_of(s, attempt.id)}
        stored = store.put_bytes(b"{}")
        register(s, attempt_id=attempt.id, step_id=steps["run-5"], path="evidence/run-5/gpu01/job.json", stored=stored)
        with pytest.raises(Refused, match="closed"):
            register(s, attempt_id=attempt.id, step_id=steps["run-1"], path="evidence/run-1/gpu01/job.json", stored=stored)


def _use_plan(s: Session, attempt: Attempt, plan: Any) -> None:
    from app.plans.models import PlanRevision

    row = s.get_one(PlanRevision, attempt.plan_id)
    row.canonical, row.hash = plan.canonical(), plan.hash
    attempt.plan_hash = plan.hash
    s.flush()


def _bring_all(s: Session, attempt: Attempt, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        if path not in ("evidence/inputs.json", FIRST_VERDICT):
            bring(s, attempt, path, data)
