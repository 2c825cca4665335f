"""Approvals: by a person, for their own party, of what they looked at, once; the effect comes with the second party."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select

from app.accounts.actor import SYSTEM, Actor, command_line
from app.approvals import objects
from app.approvals.models import Approval
from app.approvals.usecases import approve, pending
from app.attempts.usecases import claim_rig_cause, start_attempt
from app.engagements.models import Engagement
from app.engagements.usecases import overview
from app.evidence import store
from app.kit import clock
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Conflict, Forbidden, NotFound, Refused
from app.plans.usecases import add_revision, current
from tests.people import Cast, by_token
from tests.scenes import DEMO, decide, engage, finish, run

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64


def _seal(s, engagement: Engagement, actor: Actor, **changes) -> Approval:
    plan = current(s, engagement.id)
    told = {"object_kind": "plan", "object_id": plan.id, "object_hash": plan.hash, "decision": "approve", "comment": "", "actor": actor}
    return approve(s, **{**told, **changes})


def test_one_party_alone_seals_nothing_and_both_seal_in_the_same_transaction(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        _seal(s, engagement, cast.chen_jing)
        assert current(s, engagement.id).sealed_at is None
        assert engagement.state == "draft"
        assert pending(s, actor=cast.wang_fang)[0]["missing"] == ["customer"]
        _seal(s, engagement, cast.wang_fang)
        assert current(s, engagement.id).sealed_at is not None
        assert engagement.state == "active"
        assert pending(s, actor=cast.wang_fang) == []


def test_two_people_of_one_party_are_still_one_party(cast: Cast) -> None:
    second = replace(cast.li_wei, roles=frozenset({"engineer", "approver"}))
    with write_session() as s:
        engagement = engage(s, cast, DEMO.replace("roles: [engineer]", "roles: [engineer, approver]", 1), sealed=False)
        _seal(s, engagement, cast.chen_jing)
        _seal(s, engagement, second)
        assert current(s, engagement.id).sealed_at is None


def test_the_party_is_the_persons_own_and_the_record_names_them(cast: Cast) -> None:
    with write_session() as s:
        given = _seal(s, engage(s, cast, sealed=False), cast.wang_fang, comment=" 同意 ")
    assert (given.party, given.person, given.role, given.comment) == ("customer", "王芳", "验收负责人", "同意")


def test_a_token_the_command_line_the_engine_an_engineer_and_an_administrator_cannot_approve(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        for actor in (by_token(cast.chen_jing), command_line(), SYSTEM, cast.li_wei, cast.admin, cast.viewer):
            with pytest.raises(Forbidden):
                _seal(s, engagement, actor)
        assert s.execute(select(Approval)).first() is None


def test_an_approver_whom_the_engagement_does_not_name_decides_nothing(cast: Cast) -> None:
    colleague, stranger = replace(cast.chen_jing, login="other.vendor", user_id="v"), replace(cast.wang_fang, login="other.customer", user_id="c")
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        with pytest.raises(Forbidden):
            _seal(s, engagement, colleague)
        with pytest.raises(NotFound):
            _seal(s, engagement, stranger)
        assert not any(item["mine"] for item in pending(s, actor=colleague))


def test_whom_the_engagement_names_for_something_else_decides_nothing_in_it_though_his_account_may_elsewhere(cast: Cast) -> None:
    engineer = replace(cast.zhao_lei, roles=frozenset({"engineer", "approver"}))
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        with pytest.raises(Forbidden, match="not among the approvers"):
            _seal(s, engagement, engineer)
        assert not any(item["mine"] for item in pending(s, actor=engineer))


def test_who_looked_at_an_older_hash_is_told_that_it_changed(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        seen = current(s, engagement.id).hash
        add_revision(s, engagement_id=engagement.id, differences={"g3": {"agreement_max": "0.03"}}, actor=cast.li_wei)
        with pytest.raises(Conflict, match="changed since you looked"):
            _seal(s, engagement, cast.chen_jing, object_hash=seen)


def test_an_older_revision_can_no_longer_be_approved(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        old = current(s, engagement.id)
        add_revision(s, engagement_id=engagement.id, differences={"g3": {"agreement_max": "0.03"}}, actor=cast.li_wei)
        with pytest.raises(Refused, match="newer one"):
            _seal(s, engagement, cast.chen_jing, object_id=old.id, object_hash=old.hash)


def test_a_person_decides_once_and_a_rejection_needs_a_reason_and_stays_visible(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        with pytest.raises(BadInput) as caught:
            _seal(s, engagement, cast.chen_jing, decision="reject")
        assert caught.value.errors[0].pointer == "/comment"
        _seal(s, engagement, cast.chen_jing, decision="reject", comment="有误")
        with pytest.raises(Refused, match="decided"):
            _seal(s, engagement, cast.chen_jing, decision="reject", comment="仍有误")
        _seal(s, engagement, cast.wang_fang)
        assert current(s, engagement.id).sealed_at is None
        shown = overview(s, engagement_id=engagement.id, actor=cast.viewer)["plan"]["approvals"]
    assert [(a["decision"], a["comment"]) for a in shown] == [("reject", "有误"), ("approve", "")]


def test_whoever_rejected_takes_it_back_by_approving_with_a_reason_and_both_words_stay_on_record(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        _seal(s, engagement, cast.wang_fang, decision="reject", comment="缺少附录")
        assert [(item["mine"], item["rejected_by_me"]) for item in pending(s, actor=cast.wang_fang)] == [(False, True)]
        assert [item["rejected_by_me"] for item in pending(s, actor=cast.chen_jing)] == [False]
        _seal(s, engagement, cast.chen_jing)
        with pytest.raises(BadInput) as caught:
            _seal(s, engagement, cast.wang_fang)
        assert caught.value.errors[0].pointer == "/comment"
        assert current(s, engagement.id).sealed_at is None
        _seal(s, engagement, cast.wang_fang, comment="附录已补")
        assert current(s, engagement.id).sealed_at is not None
        shown = overview(s, engagement_id=engagement.id, actor=cast.viewer)["plan"]["approvals"]
    assert [(a["person"], a["decision"], a["comment"]) for a in shown] == [
        ("王芳", "reject", "缺少附录"),
        ("陈静", "approve", ""),
        ("王芳", "approve", "附录已补"),
    ]


@pytest.mark.parametrize(("first", "second"), [("approve", "reject"), ("approve", "approve"), ("reject", "reject")])
def test_nothing_but_a_rejection_is_taken_back(cast: Cast, first: str, second: str) -> None:
    with write_session() as s:
        engagement = engage(s, cast, sealed=False)
        _seal(s, engagement, cast.wang_fang, decision=first, comment="第一次")
        with pytest.raises(Refused, match="decided"):
            _seal(s, engagement, cast.wang_fang, decision=second, comment="第二次")


def test_the_rejection_of_one_is_not_undone_by_a_colleagues_approval(cast: Cast) -> None:
    second = replace(cast.li_wei, roles=frozenset({"engineer", "approver"}))
    with write_session() as s:
        engagement = engage(s, cast, DEMO.replace("roles: [engineer]", "roles: [engineer, approver]", 1), sealed=False)
        _seal(s, engagement, cast.chen_jing, decision="reject", comment="有误")
        _seal(s, engagement, second)
        _seal(s, engagement, cast.wang_fang)
        assert current(s, engagement.id).sealed_at is None


def test_a_rejected_sign_off_says_who_rejected_it_and_how_it_goes_on_and_the_next_gate_opens_when_it_is_taken_back(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        main = run(s, cast, engagement, "G3", sign=False)
        decide(s, "sign_off", cast.chen_jing, object_id=main.id, scan=PNG)
        decide(s, "sign_off", cast.wang_fang, object_id=main.id, decision="reject", comment="扫描件不清晰")
        with pytest.raises(Refused, match=r"rejected by the customer.*takes that back by approving"):
            start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)
        decide(s, "sign_off", cast.wang_fang, object_id=main.id, comment="已重新扫描", scan=PNG)
        start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)


def test_a_conditional_that_was_rejected_is_accepted_later_only_while_no_other_attempt_was_begun(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        run(s, cast, engagement, "G2", "conditional", because=["fragile"])
        decide(s, "conditional", cast.chen_jing)
        decide(s, "conditional", cast.wang_fang, decision="reject", comment="余量不足")
        said = [a for a in overview(s, engagement_id=engagement.id, actor=cast.viewer)["approvals"] if a["object_kind"] == "conditional"][-1]
        start_attempt(s, engagement_id=engagement.id, gate="G2", actor=cast.li_wei)
        words = {key: said[key] for key in ("object_kind", "object_id", "object_hash")}
        with pytest.raises(Refused, match="attempt 2 was begun on that"):
            approve(s, **words, decision="approve", comment="改主意了", actor=cast.wang_fang)


def test_an_approval_is_never_changed_nor_removed(cast: Cast) -> None:
    with write_session() as s:
        engage(s, cast)

    def tamper(change) -> None:
        with write_session() as s:
            change(s, s.execute(select(Approval)).scalars().first())

    with pytest.raises(RuntimeError, match="never changed"):
        tamper(lambda s, given: setattr(given, "decision", "reject"))
    with pytest.raises(RuntimeError, match="never changed"):
        tamper(lambda s, given: s.delete(given))


def test_a_conditional_gate_goes_on_only_with_the_consent_of_both(cast: Cast) -> None:
    baseline = {"baseline": {"hash": "sha256:" + "b" * 64, "tiers": {"8": {"ttft_p50_ns": 1, "output_tokens_per_s": "2"}}}}
    with write_session() as s:
        engagement = engage(s, cast)
        run(s, cast, engagement, "G1")
        run(s, cast, engagement, "G2", "conditional", because=["fragile"], facts=baseline)
        assert engagement.g2_baseline is None
        decide(s, "conditional", cast.chen_jing)
        with pytest.raises(Refused, match="the customer"):
            start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)
        decide(s, "conditional", cast.wang_fang)
        assert engagement.g2_baseline["hash"] == baseline["baseline"]["hash"]
        start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)


def test_a_sign_off_keeps_the_scan_by_its_hash_and_opens_the_next_gate(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        main = run(s, cast, engagement, "G3", sign=False)
        with pytest.raises(Refused, match="not signed off"):
            start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)
        decide(s, "sign_off", cast.chen_jing, object_id=main.id, scan=PNG, scan_name="signed.pdf")
        with pytest.raises(BadInput) as caught:
            decide(s, "sign_off", cast.wang_fang, object_id=main.id, scan=b"MZ not a picture", scan_name="signed.pdf")
        assert caught.value.errors[0].pointer == "/scan"
        decide(s, "sign_off", cast.wang_fang, object_id=main.id, scan=PNG)
        start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)
        scans = [a["scan_sha256"] for a in overview(s, engagement_id=engagement.id, actor=cast.viewer)["approvals"] if a["object_kind"] == "sign_off"]
    assert store.read(scans[0]) == PNG
    assert scans[1] == scans[0]


def test_a_required_sign_off_without_the_scan_is_refused_a_rejection_and_a_consent_need_none(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        first = run(s, cast, engagement, "G1")
        decide(s, "sign_off", cast.chen_jing, object_id=first.id)  # recorded, not required, by the plan
        run(s, cast, engagement, "G2")
        main = run(s, cast, engagement, "G3", sign=False)
        assert [i["scan_required"] for i in pending(s, actor=cast.wang_fang) if i["object_id"] == main.id] == [True]
        with pytest.raises(BadInput, match="without the scan") as caught:
            decide(s, "sign_off", cast.chen_jing, object_id=main.id)
        assert caught.value.errors[0].pointer == "/scan"
        decide(s, "sign_off", cast.chen_jing, object_id=main.id, decision="reject")
        assert start_refusal(s, cast, engagement, "G4") == "sign_off_missing"


def test_a_sign_off_asks_for_the_scan_only_where_the_plan_does(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        first = run(s, cast, engagement, "G1")
        run(s, cast, engagement, "G2")
        main = run(s, cast, engagement, "G3", sign=False)
        asked = {i["object_id"]: i for i in pending(s, actor=cast.wang_fang) if i["object_kind"] == "sign_off"}
        assert "asks for no scan" in asked[first.id]["reason"]["en"]
        assert "upload the scan" in asked[main.id]["reason"]["en"]
        assert all(i["simulated"] for i in asked.values())


def start_refusal(s, cast: Cast, engagement: Engagement, gate: str) -> str:
    with pytest.raises(Refused) as caught:
        start_attempt(s, engagement_id=engagement.id, gate=gate, actor=cast.li_wei)
    return caught.value.code


def test_a_report_that_is_not_there_cannot_be_signed(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = run(s, cast, engagement, "G1")
        attempt.status = "running"
        s.flush()
        assert [i["object_kind"] for i in pending(s, actor=cast.chen_jing)] == []


def test_a_stop_is_lifted_by_both_within_the_days_of_objection_and_the_fail_stays(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        failed = run(s, cast, engagement, "G3", "fail")
        assert engagement.state == "stopped"
        assert "Stop-loss" in engagement.state_reason["en"]
        decide(s, "stop_loss", cast.chen_jing)
        assert engagement.state == "stopped"
        later = clock.now().replace(year=clock.now().year + 1)
        with monkeypatch.context() as patch:
            patch.setattr(objects, "now", lambda: later)
            assert "stop_loss" not in [i["object_kind"] for i in pending(s, actor=cast.wang_fang)]
        decide(s, "stop_loss", cast.wang_fang)
        assert engagement.state == "active"
        gate = next(g for g in overview(s, engagement_id=engagement.id, actor=cast.viewer)["gates"] if g["gate"] == "G3")
        assert (failed.verdict, gate["verdict"], gate["attempts_left"]) == ("fail", "fail", 1)


def test_an_approved_rig_cause_gives_the_attempt_back_and_another_text_is_another_claim(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = run(s, cast, engagement, "G1", "invalid")
        claim_rig_cause(s, attempt_id=attempt.id, cause="机房断电", actor=cast.li_wei)
        decide(s, "rig_cause", cast.chen_jing)
        claim_rig_cause(s, attempt_id=attempt.id, cause="交换机故障", actor=cast.li_wei)
        decide(s, "rig_cause", cast.wang_fang)
        assert overview(s, engagement_id=engagement.id, actor=cast.viewer)["gates"][0]["attempts_left"] == 2
        decide(s, "rig_cause", cast.chen_jing)
        assert overview(s, engagement_id=engagement.id, actor=cast.viewer)["gates"][0]["attempts_left"] == 3
        with pytest.raises(Refused, match="does not change any more"):
            claim_rig_cause(s, attempt_id=attempt.id, cause="什么都可以", actor=cast.li_wei)


def test_a_fail_is_no_rig_cause(cast: Cast) -> None:
    with write_session() as s:
        attempt = run(s, cast, engage(s, cast), "G1", "fail")
        with pytest.raises(Refused, match="judged the product"):
            claim_rig_cause(s, attempt_id=attempt.id, cause="机房断电", actor=cast.li_wei)


def test_an_engagement_without_attempts_left_is_closed_by_both_parties_and_then_nothing_starts(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        assert "close" not in [i["object_kind"] for i in pending(s, actor=cast.chen_jing)]
        for _ in range(3):
            run(s, cast, engagement, "G1", "inconclusive")
        assert engagement.state == "not_concluded"
        decide(s, "close", cast.chen_jing, cast.wang_fang)
        assert engagement.state == "closed"
        for rehearsal in (False, True):
            with pytest.raises(Refused, match="Closed"):
                start_attempt(s, engagement_id=engagement.id, gate="G1", rehearsal=rehearsal, actor=cast.li_wei)


def test_attempts_used_up_by_cancels_alone_leave_the_engagement_to_be_closed(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for _ in range(3):
            attempt = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
            attempt.counted_at = clock.now()
            finish(s, attempt, None, status="canceled")
        view = overview(s, engagement_id=engagement.id, actor=cast.viewer)
        assert (view["state"], view["next"]["kind"], view["gates"][0]["state"]) == ("not_concluded", "close", "not_concluded")
        decide(s, "close", cast.chen_jing, cast.wang_fang)
        assert engagement.state == "closed"


def test_four_passes_signed_where_required_conclude_the_engagement(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2", "G3", "G4"):
            run(s, cast, engagement, gate)
        assert engagement.state == "concluded"
    with read_session() as s:
        assert overview(s, engagement_id=engagement.id, actor=cast.viewer)["next"]["kind"] == "none"


def test_a_canceled_attempt_leaves_nothing_to_approve(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        finish(s, start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei), None, status="canceled")
        assert pending(s, actor=cast.chen_jing) == []
