"""Reports on the real tables and the real store: same facts, same report; new facts, next revision; both languages in step."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pypdf
import pytest
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM
from app.approvals.models import Approval
from app.attempts import revisions as judgements
from app.attempts.models import Attempt, Step, VerdictRevision
from app.attempts.moves import kept_reason
from app.attempts.usecases import attempt_view, claim_rig_cause, start_attempt
from app.audit.chain import verify
from app.audit.models import AuditRow
from app.evidence import store
from app.kit.clock import now
from app.kit.db import new_id, read_session, write_session
from app.kit.errors import NotFound
from app.reports import format as f
from app.reports import usecases
from app.reports.models import Report
from app.up.ending import STOPPED
from gates.canonical import canonical_bytes, sha256_of
from gates.model import StepKind
from tests.people import Cast
from tests.scenes import decide, document, engage, finish, within
from tests.unit.reports import samples


def start(s: Session, cast: Cast) -> Attempt:
    return start_attempt(s, engagement_id=engage(s, cast).id, gate="G1", actor=cast.li_wei)


def judge(s: Session, attempt: Attempt, revision: int = 1, verdict: str = "pass") -> VerdictRevision:
    """Keep a judgement as the engine does, with its manifest in the store."""
    manifest = samples.manifest("G1") | {"attempt": {"id": attempt.id, "number": 1, "rehearsal": False}, "judge_version": f"test-{revision}"}
    kept = store.put_bytes(canonical_bytes(manifest))
    document = samples.document("G1", verdict, manifest_hash="sha256:" + kept.sha256)
    row = VerdictRevision(
        id=new_id(), attempt_id=attempt.id, revision=revision, verdict=verdict, document=document, hash=sha256_of(document), at=now()
    )
    row.judge_version, row.rules_hash = document["judge_version"], document["rules_hash"]
    row.plan_hash, row.manifest_hash = attempt.plan_hash, document["manifest_hash"]
    s.add(row)
    s.flush()
    return row


def sign_off(s: Session, attempt: Attempt, row: VerdictRevision, who: str, cast: Cast) -> None:
    actor = cast.chen_jing if who == "vendor" else cast.wang_fang
    values = {"object_kind": "sign_off", "object_id": attempt.id, "object_hash": row.manifest_hash, "party": who, "decision": "approve"}
    person = {"user_id": actor.user_id, "person": actor.name, "role": actor.title, "at": now()}
    s.add(Approval(id=new_id(), engagement_id=attempt.engagement_id, comment="seen", **values, **person))
    s.flush()


def text_of(report: Report) -> str:
    return "".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(store.read(report.sha256))).pages)


def test_the_same_facts_give_the_same_row_and_both_languages_share_number_and_basis(cast: Cast) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        row = judge(s, attempt)
        zh = usecases.render(within(s), attempt_id=attempt.id, language="zh_CN")
        en = usecases.render(within(s), attempt_id=attempt.id, language="en")
        assert usecases.render(within(s), attempt_id=attempt.id, language="zh-CN").id == zh.id
        assert (zh.language, en.language) == ("zh-CN", "en")
        assert zh.number == en.number == "ACC-DEMO-G1-R0"
        assert zh.basis == en.basis
        assert zh.sha256 != en.sha256
        assert zh.verdict_hash == row.hash
        assert zh.manifest_hash == row.manifest_hash
        rendered = [r.data["sha256"] for r in s.query(AuditRow).filter_by(action="report_rendered").order_by(AuditRow.seq)]
        assert rendered == [zh.sha256, en.sha256]
        assert verify(s).ok
    with read_session() as s:
        found, data = usecases.report_file(s, report_id=zh.id, actor=cast.viewer)
        assert found.size == len(data)
        assert data.startswith(b"%PDF-")


def test_ending_the_attempt_after_its_report_was_written_changes_nothing_in_it(cast: Cast) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        attempt.status = "running"
        judge(s, attempt)
        first = usecases.render(within(s), attempt_id=attempt.id, language="zh-CN")
        attempt.status, attempt.verdict, attempt.finished_at = "finished", "pass", now()
        s.flush()
        assert usecases.render(within(s), attempt_id=attempt.id, language="zh-CN").id == first.id


def test_an_attempt_that_measured_nothing_counts_in_its_report_from_its_first_judgement(cast: Cast) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        before = usecases.dataset(s, attempt_id=attempt.id, language="en")
        first = judge(s, attempt)
        judge(s, attempt, 2, "fail")
        after = usecases.dataset(s, attempt_id=attempt.id, language="en")
        assert attempt.counted_at is None
        assert "counted: 0" in before["scope"]["tries"]
        assert "counted: 1" in after["scope"]["tries"]
        assert [row["counted"] for row in after["attempts"]] == [f.moment(first.at.isoformat())]


def test_new_approvals_and_a_new_judgement_each_give_the_next_revision_and_the_former_stays(cast: Cast) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        row = judge(s, attempt)
        first = usecases.render(within(s), attempt_id=attempt.id, language="en")
        sign_off(s, attempt, row, "vendor", cast)
        sign_off(s, attempt, row, "customer", cast)
        second = usecases.render(within(s), attempt_id=attempt.id, language="en")
        late = usecases.render(within(s), attempt_id=attempt.id, language="zh-CN")
        judge(s, attempt, 2, "fail")
        third = usecases.render(within(s), attempt_id=attempt.id, language="en")
        assert [r.number[-2:] for r in (first, second, late, third)] == ["R0", "R1", "R1", "R2"]
        assert "SIGNED OFF" in text_of(second)
        assert "王芳" in text_of(second)
        assert "SIGNED OFF" not in text_of(third)  # the signatures are of a pass, and this is a fail
        data = usecases.dataset(s, attempt_id=attempt.id, language="en")
        assert [(r["revision"], r["what"]) for r in data["document"]["revisions"]] == [
            ("R0", "first issue"),
            ("R1", "approvals or later facts recorded"),
            ("R2", "judged again; the former judgement stays on record"),
        ]
        assert [j["verdict"] for j in data["judgements"]] == ["pass", "fail"]
        latest = usecases.latest(s, attempt_id=attempt.id, language="en")
        assert latest is not None
        assert latest.id == third.id
        assert store.read(first.sha256)


def test_judging_again_moves_neither_the_end_of_an_attempt_nor_the_days_of_objection_against_the_same_fail(cast: Cast) -> None:
    with write_session() as s:
        attempt = finish(s, start(s, cast), "fail")
        attempt.finished_at = now()
        first = judgements.newest(s, attempt.id)
        assert first is not None
        first.at = now() - timedelta(days=3)
        before = usecases.dataset(s, attempt_id=attempt.id, language="en")
        told = document(attempt, "fail", rules_hash="sha256:" + "2" * 64)
        judgements.add(s, attempt_id=attempt.id, document=told, manifest_hash=first.manifest_hash, actor=SYSTEM)
        after = usecases.dataset(s, attempt_id=attempt.id, language="en")
    assert len(after["judgements"]) == 2
    assert after["attempt"]["ended"] == before["attempt"]["ended"] == f.moment(first.at.isoformat())
    assert after["consequence"]["sentences"] == before["consequence"]["sentences"]


def test_the_attached_dataset_is_the_one_that_the_use_case_returns(cast: Cast) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        judge(s, attempt)
        report = usecases.render(within(s), attempt_id=attempt.id, language="zh-CN")
        data = usecases.dataset(s, attempt_id=attempt.id, language="zh-CN")
    attached = pypdf.PdfReader(io.BytesIO(store.read(report.sha256))).attachments
    assert json.loads(attached["results.json"][0]) == json.loads(canonical_bytes(data))
    assert sha256_of(json.loads(attached["manifest.json"][0])) == report.manifest_hash


def test_the_unpacking_form_and_other_attempts_come_from_the_tables_and_no_credential_does(cast: Cast) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        step = s.query(Step).filter_by(attempt_id=attempt.id, kind=str(StepKind.MANUAL)).one()
        step.result = {"form": {"packaging": "intact", "notes": "叉车卸货"}, "photos": ["records.jsonl"], "entered_by": "赵磊"}
        judge(s, attempt)
        data = usecases.dataset(s, attempt_id=attempt.id, language="zh-CN")
    entries = {row["entry"] for row in data["forms"][0]["rows"]}
    assert {"完好", "叉车卸货", "赵磊", f"{3:064x}"} <= entries
    assert [a["this"] for a in data["attempts"]] == [True]
    assert {host["host"] for host in data["hosts"]} == {"gpu01", "array01"}
    assert "credential" not in json.dumps(data).lower()


@pytest.mark.parametrize(("kept", "printed"), [("机房断电", "机房断电"), (kept_reason(STOPPED), "服务已停止。")], ids=["a-person", "the-service"])
def test_an_attempt_without_a_judgement_is_a_draft_with_its_end(cast: Cast, kept: str, printed: str) -> None:
    with write_session() as s:
        attempt = start(s, cast)
        attempt.status, attempt.cancel_reason, attempt.finished_at = "canceled", kept, now()
        s.flush()
        data = usecases.dataset(s, attempt_id=attempt.id, language="zh-CN")
    assert data["document"]["state"] == "draft"
    assert data["verdict"]["word"] == "none"
    assert [(a["status"], a["reason"]) for a in data["attempts"]] == [("canceled", printed)]


def test_an_unknown_attempt_or_report_is_not_found(cast: Cast) -> None:
    with read_session() as s:
        with pytest.raises(NotFound):
            usecases.dataset(s, attempt_id=new_id(), language="en")
        with pytest.raises(NotFound):
            usecases.report_file(s, report_id=new_id(), actor=cast.viewer)


def test_an_attempt_that_measured_and_has_an_approved_rig_cause_counts_on_no_face(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        attempt.counted_at = now()  # as after the first measured request of G2 to G4
        finish(s, attempt, None, status="error")
        claim_rig_cause(s, attempt_id=attempt.id, cause="机房断电", actor=cast.li_wei)
        decide(s, "rig_cause", cast.chen_jing)
        assert attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)["counted"]
        assert "counted: 1" in usecases.dataset(s, attempt_id=attempt.id, language="en")["scope"]["tries"]
        decide(s, "rig_cause", cast.wang_fang)
        view = attempt_view(s, attempt_id=attempt.id, actor=cast.viewer)
        assert (view["counted"], view["excused"]) == (False, True)
        told = usecases.dataset(s, attempt_id=attempt.id, language="zh-CN")
        assert "其中计次 0 次" in told["scope"]["tries"]
        assert [row["counted"] for row in told["attempts"]] == [""]
        assert "机房断电" in told["attempts"][0]["reason"]
