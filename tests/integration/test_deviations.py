"""The register: recorded with owner, reason and due date, closed with a note, never rewritten; a waiver takes both and is never a pass."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.accounts.actor import Actor
from app.approvals.usecases import approve, pending
from app.attempts.usecases import start_attempt
from app.audit.models import AuditRow
from app.deviations.models import Deviation
from app.deviations.usecases import close_deviation, deviations, record_deviation
from app.engagements.usecases import overview
from app.kit import clock
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Forbidden, NotFound, Refused
from app.reports.usecases import dataset, print_again
from tests.people import Cast
from tests.scenes import decide, engage, run, within

SOON = (clock.now() + timedelta(days=30)).date().isoformat()


def _entry(s: Any, engagement: Any, actor: Actor, **more: Any) -> Deviation:
    told = {"kind": "punch", "gate": "G1", "what": "缺少一根备用光纤", "reason": "物流延误", "owner_party": "vendor", "owner": "李伟", "due": SOON}
    return record_deviation(s, engagement_id=engagement.id, actor=actor, **{**told, **more})


def test_an_entry_names_what_is_wrong_with_each_field(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        with pytest.raises(BadInput) as caught:
            _entry(
                s,
                engagement,
                cast.li_wei,
                kind="wish",
                gate="G9",
                what=" ",
                reason="x" * 2001,
                owner="",
                owner_party="both",
                due="soon",
                severity="?",
            )
        past = (clock.now() - timedelta(days=3)).date().isoformat()
        with pytest.raises(BadInput) as late:
            _entry(s, engagement, cast.li_wei, due=past)
    assert {e.pointer for e in caught.value.errors} == {"/kind", "/gate", "/what", "/reason", "/owner", "/owner_party", "/due", "/severity"}
    assert [e.pointer for e in late.value.errors] == ["/due"]


def test_an_entry_is_closed_once_with_a_note_and_stays(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        first, second = _entry(s, engagement, cast.li_wei), _entry(s, engagement, cast.zhao_lei, kind="deviation", gate="G2")
        with pytest.raises(BadInput, match="stays open"):
            close_deviation(s, deviation_id=first.id, closing=" ", actor=cast.wang_fang)
        close_deviation(s, deviation_id=first.id, closing="已补发，见照片 3", actor=cast.wang_fang)
        with pytest.raises(Refused, match="closed already"):
            close_deviation(s, deviation_id=first.id, closing="再次关闭", actor=cast.li_wei)
        shown = deviations(s, engagement_id=engagement.id, actor=cast.viewer)
        actions = list(s.execute(select(AuditRow.action).where(AuditRow.object_kind == "deviation").order_by(AuditRow.seq)).scalars())
    assert [(d["label"], d["state"], d["closed_by"]) for d in shown] == [("D-2", "open", ""), ("P-1", "closed", "王芳")]
    assert second.recorded_party == "customer"
    assert actions == ["punch.record", "deviation.record", "punch.close"]


def test_what_was_recorded_is_never_rewritten_nor_removed(cast: Cast) -> None:
    with write_session() as s:
        found = _entry(s, engage(s, cast), cast.li_wei).id
    for change in (lambda s, d: setattr(d, "due", d.due + timedelta(days=90)), lambda s, d: s.delete(d)):
        with pytest.raises(RuntimeError, match="about to be"), write_session() as s:
            change(s, s.get_one(Deviation, found))


def test_a_viewer_records_nothing_and_a_stranger_sees_no_register(cast: Cast) -> None:
    from dataclasses import replace

    stranger = replace(cast.zhao_lei, login="other.customer", user_id="c")
    with write_session() as s:
        engagement = engage(s, cast)
        entry = _entry(s, engagement, cast.li_wei)
        with pytest.raises(Forbidden):
            _entry(s, engagement, cast.viewer)
        with pytest.raises(NotFound):
            deviations(s, engagement_id=engagement.id, actor=stranger)
        with pytest.raises(NotFound):
            close_deviation(s, deviation_id=entry.id, closing="已处理", actor=stranger)


def test_a_waiver_takes_both_parties_and_changes_no_verdict_and_opens_no_gate(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        run(s, cast, engagement, "G3", "fail")
        before = overview(s, engagement_id=engagement.id, actor=cast.viewer)
        waiver = _entry(s, engagement, cast.li_wei, kind="waiver", gate="G3", what="并发 32 的 TTFT 降幅按 24 % 接受")
        states = []
        for actor in (cast.chen_jing, cast.wang_fang):
            states.append(deviations(s, engagement_id=engagement.id, actor=cast.viewer)[0]["state"])
            decide(s, "waiver", actor)
        after = overview(s, engagement_id=engagement.id, actor=cast.viewer)
        assert [*states, after["deviations"][0]["state"]] == ["proposed", "proposed", "granted"]
        assert (after["state"], after["gates"]) == (before["state"], before["gates"])
        assert after["gates"][2]["verdict"] == "fail"
        with pytest.raises(Refused, match="Stop-loss"):
            start_attempt(s, engagement_id=engagement.id, gate="G4", actor=cast.li_wei)
        close_deviation(s, deviation_id=waiver.id, closing="让步期满", actor=cast.wang_fang)
        assert "waiver" not in [i["object_kind"] for i in pending(s, actor=cast.chen_jing)]


def test_one_party_alone_grants_no_waiver_and_a_rejected_or_closed_one_stays_so(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        waiver = _entry(s, engagement, cast.zhao_lei, kind="waiver")
        decide(s, "waiver", cast.chen_jing, decision="reject")
        decide(s, "waiver", cast.wang_fang)
        assert deviations(s, engagement_id=engagement.id, actor=cast.viewer)[0]["state"] == "rejected"
        other = _entry(s, engagement, cast.zhao_lei, kind="waiver")
        seen = next(i for i in pending(s, actor=cast.wang_fang) if i["object_id"] == other.id)
        close_deviation(s, deviation_id=other.id, closing="不再需要", actor=cast.zhao_lei)
        with pytest.raises(Refused, match="closed already"):
            approve(s, object_kind="waiver", object_id=other.id, object_hash=seen["object_hash"], decision="approve", actor=cast.wang_fang)
        assert waiver.number == 1


def test_the_gates_report_prints_its_own_entries_and_what_earlier_gates_left_open(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        _entry(s, engagement, cast.li_wei)
        closed = _entry(s, engagement, cast.li_wei, kind="deviation", what="环境温度高于规定")
        close_deviation(s, deviation_id=closed.id, closing="空调已修复", actor=cast.zhao_lei)
        _entry(s, engagement, cast.li_wei, kind="waiver", gate="G2", what="固件版本按现状接受")
        decide(s, "waiver", cast.chen_jing, cast.wang_fang)
        _entry(s, engagement, cast.li_wei, gate="G3", what="尚未交付的手册")
        first, second = run(s, cast, engagement, "G1"), run(s, cast, engagement, "G2")
    with read_session() as s:
        g1, g2 = (dataset(s, attempt_id=a.id, language="zh-CN") for a in (first, second))
    assert [(r["id"], r["state_text"]) for r in g1["deviations"]] == [("D-2", "已关闭")]
    assert [r["id"] for r in g1["punch"]] == ["P-1"]
    assert "空调已修复" in g1["deviations"][0]["said"][0]
    assert [(r["id"], r["state"], len(r["said"])) for r in g2["deviations"]] == [("W-3", "granted", 2)]
    assert [r["id"] for r in g2["punch"]] == ["P-1"]
    assert [a["object_kind"] for a in g2["approvals"] if a["object_kind"] == "waiver"] == ["waiver", "waiver"]
    assert g2["verdict"]["word"] == "pass"  # by its own checks: the waiver adds and takes nothing


def test_a_report_printed_again_holds_what_was_recorded_since_and_the_same_facts_give_the_same_report(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        attempt = run(s, cast, engagement, "G1")
        with pytest.raises(Forbidden):
            print_again(within(s), attempt_id=attempt.id, actor=cast.viewer)
        first = print_again(within(s), attempt_id=attempt.id, actor=cast.wang_fang)
        languages, revision = [r.language for r in first], first[0].revision
        _entry(s, engagement, cast.li_wei)
        second, third = (print_again(within(s), attempt_id=attempt.id, actor=cast.wang_fang) for _ in range(2))
        running = start_attempt(s, engagement_id=engagement.id, gate="G2", actor=cast.li_wei)
        with pytest.raises(Refused, match="not finished"):
            print_again(within(s), attempt_id=running.id, actor=cast.wang_fang)
        assert {r.revision for r in second} == {revision + 1}
        assert [r.id for r in second] == [r.id for r in third]
    assert languages == ["zh-CN", "en"]


def test_the_register_is_kept_at_its_page_and_what_is_wrong_stands_at_its_field(cast: Cast) -> None:
    from tests.integration.web_client import Browser

    with write_session() as s:
        engagement = engage(s, cast).id
    page, where = Browser("zhao.lei", "zh-CN"), f"/engagements/{engagement}/register"
    told = {
        "kind": "waiver",
        "gate": "G1",
        "severity": "major",
        "what": "固件按现状接受",
        "reason": "新版尚在认证",
        "owner_party": "vendor",
        "owner": "李伟",
    }
    wrong = page.send(where, **told, due="2020-01-01")
    assert (wrong.status_code, "期限 2020-01-01 已过" in wrong.text, "固件按现状接受" in wrong.text) == (422, True, True)
    assert page.send(where, **told, due=SOON).status_code == 303
    shown = page.get(where).text
    assert ("让步已登记" in shown, "W-1" in shown, "已提出，尚未同意" in shown) == (True, True, True)
    inbox = Browser("wang.fang", "zh-CN").get("/sign-off").text
    assert ("让步 W-1，G1" in inbox, "不计为通过" in inbox) == (True, True)
    with read_session() as s:
        entry = deviations(s, engagement_id=engagement, actor=cast.viewer)[0]["id"]
    assert page.send(f"{where}/{entry}/close", closing=" ").status_code == 422
    assert page.send(f"{where}/{entry}/close", closing="已升级固件").status_code == 303
    assert "已升级固件" in page.get(f"/engagements/{engagement}").text
    assert "登记条目" not in Browser("viewer", "zh-CN").get(where).text


def test_the_register_is_kept_by_rest_and_a_repeated_request_records_once(cast: Cast) -> None:
    from tests.integration.web_client import Robot

    with write_session() as s:
        engagement = engage(s, cast).id
    robot, stranger = Robot(cast.li_wei.user_id), Robot(cast.viewer.user_id)
    body = {"kind": "punch", "gate": "G1", "what": "备件未到", "reason": "物流", "owner_party": "vendor", "owner": "李伟", "due": SOON}
    made = [robot.post(f"/engagements/{engagement}/deviations", json=body, Idempotency_Key="punch-number-1") for _ in range(2)]
    assert [m.status_code for m in made] == [201, 201]
    assert made[0].json()["id"] == made[1].json()["id"]
    bad = robot.post(f"/engagements/{engagement}/deviations", json=body | {"due": "tomorrow", "reason": "   "})
    assert (bad.status_code, {e["pointer"] for e in bad.json()["errors"]}) == (422, {"/due", "/reason"})
    address = f"/deviations/{made[0].json()['id']}"
    assert stranger.post(f"{address}/close", json={"closing": "已到货"}).status_code == 403
    assert robot.post(f"{address}/close", json={"closing": "已到货"}).json()["state"] == "closed"
    assert robot.post(f"{address}/close", json={"closing": "再次关闭"}).status_code == 409
    assert [d["state"] for d in stranger.get(f"/engagements/{engagement}/deviations").json()["items"]] == ["closed"]
    assert stranger.get(address).json()["closing"] == "已到货"


def test_a_form_that_is_sent_twice_makes_one_entry(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        first, again = (_entry(s, engagement, cast.li_wei) for _ in range(2))
        assert again.id == first.id
        assert len(s.scalars(select(AuditRow).where(AuditRow.action == "punch.record")).all()) == 1
        assert _entry(s, engagement, cast.zhao_lei).id != first.id  # another person says it too
        close_deviation(s, deviation_id=first.id, closing="已补发", actor=cast.li_wei)
        assert _entry(s, engagement, cast.li_wei).id != first.id  # it happened again
