"""The wipe of a unit on loan: ordered by serial number, begun only when a person of each party approved exactly that, kept drive by drive."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from app.accounts.actor import command_line
from app.approvals.usecases import approve, pending
from app.audit.models import AuditRow
from app.engagements.models import Engagement
from app.engine import runs, wiping
from app.engine.models import HostLock, TargetRemoval
from app.evidence import store
from app.kit.clock import now
from app.kit.db import new_id, read_session, write_session
from app.kit.errors import BadInput, Conflict, Forbidden, Refused
from app.ops.references import referred
from app.wipes.models import WipeFile, WipeOrder
from app.wipes.usecases import approved, order_wipe, wipe_seen, wipes, withdraw_wipe
from app.wipes.views import digest
from tests.people import Cast
from tests.scenes import DEMO, decide, engage, run

SERIALS = ["QF26K0A00101", "QF26K0A00102"]


def ordered(s: Any, cast: Cast, *decided: Any) -> tuple[Engagement, WipeOrder]:
    """Order a wipe of two drives, and let people approve it."""
    engagement = engage(s, cast, DEMO.replace("title: 交付工程师, roles: [engineer]", "title: 交付工程师, roles: [engineer, approver]"))
    order = order_wipe(s, engagement_id=engagement.id, way="sanitize_block", serials=SERIALS, reason="借测期满，归还设备", actor=cast.li_wei)
    decide(s, "wipe", *decided)
    return engagement, order


def test_an_order_names_drives_of_the_packing_list_in_a_storage_host_and_nothing_else(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        with pytest.raises(BadInput) as caught:
            order_wipe(s, engagement_id=engagement.id, way="hammer", serials=["MT2651X00042", "QF26K0A00109"], reason=" ", actor=cast.li_wei)
        with pytest.raises(BadInput, match="cannot be ordered"):
            order_wipe(s, engagement_id=engagement.id, way="format_user", serials=[], reason="归还", actor=cast.li_wei)
        with pytest.raises(Forbidden):
            order_wipe(s, engagement_id=engagement.id, way="format_user", serials=SERIALS, reason="归还", actor=cast.viewer)
        assert len(wipes(s, engagement_id=engagement.id, actor=cast.viewer)["drives"]) == 4
    assert [e.pointer for e in caught.value.errors] == ["/serials", "/serials", "/way", "/reason"]


def test_nothing_is_begun_without_a_person_of_each_party_and_the_approval_names_the_serial_numbers(cast: Cast) -> None:
    second = replace(cast.chen_jing, user_id=cast.viewer.user_id, login="li.wei")  # another person of the same party
    with write_session() as s:
        _, order = ordered(s, cast)
        item = next(i for i in pending(s, actor=cast.chen_jing) if i["object_kind"] == "wipe")
        assert all(serial in item["reason"][language] for serial in SERIALS for language in ("en", "zh-CN"))
        for actors in ((), (cast.chen_jing,), (second,)):
            decide(s, "wipe", *actors)
            with pytest.raises(Refused, match=r"lacks the approval of: (Vendor, )?Customer"):
                wiping.begin(s, order_id=order.id, actor=command_line())
        for robot in (command_line(), replace(cast.wang_fang, via="token")):
            with pytest.raises(Forbidden):
                approve(s, object_kind="wipe", object_id=order.id, object_hash=digest(order), decision="approve", actor=robot)
        with pytest.raises(Conflict, match="changed since"):
            approve(s, object_kind="wipe", object_id=order.id, object_hash="sha256:" + "0" * 64, decision="approve", actor=cast.wang_fang)
    with pytest.raises(Refused, match="Nothing was wiped"):
        wiping.go_on(order.id, command_line())
    assert not runs.folder_of(order.id, "wipe", "run-1").exists()
    with write_session() as s:
        decide(s, "wipe", cast.wang_fang)
        assert {party: a.person for party, a in approved(s, s.get_one(WipeOrder, order.id)).items()} == {"vendor": "陈静", "customer": "王芳"}
        assert wiping.begin(s, order_id=order.id, actor=command_line()).started_by == "cli (cli)"
        assert wiping.begin(s, order_id=order.id, actor=cast.li_wei).started_by == "cli (cli)"
        assert {row.attempt_id for row in s.scalars(select(HostLock))} == {order.id}
        told = dict(s.scalars(select(AuditRow).where(AuditRow.action == "wipe.start")).one().data)
        with pytest.raises(Refused, match="begun already"):
            withdraw_wipe(s, wipe_id=order.id, reason="改变主意", actor=cast.li_wei)
    assert (told["serials"], sorted(told["approvals"])) == (SERIALS, ["customer", "vendor"])


def test_a_rejected_or_withdrawn_order_is_never_begun_and_what_was_ordered_is_never_rewritten(cast: Cast) -> None:
    with write_session() as s:
        engagement, order = ordered(s, cast, cast.wang_fang)
        decide(s, "wipe", cast.chen_jing, decision="reject")
        with pytest.raises(Refused, match="lacks the approval of: Vendor"):
            wiping.begin(s, order_id=order.id, actor=command_line())
        other = order_wipe(s, engagement_id=engagement.id, way="format_crypto", serials=SERIALS[:1], reason="归还", actor=cast.zhao_lei)
        decide(s, "wipe", cast.chen_jing, cast.wang_fang, object_id=other.id)
        withdraw_wipe(s, wipe_id=other.id, reason="延期归还", actor=cast.wang_fang)
        with pytest.raises(Refused, match="withdrawn"):
            wiping.begin(s, order_id=other.id, actor=command_line())
        states = [(w["label"], w["state"]) for w in wipes(s, engagement_id=engagement.id, actor=cast.viewer)["items"]]
    assert states == [("E-2", "withdrawn"), ("E-1", "rejected")]
    for change in (lambda s, w: setattr(w, "drives", []), lambda s, w: setattr(w, "withdrawn_why", "x"), lambda s, w: s.delete(w)):
        with pytest.raises(RuntimeError, match="about to be"), write_session() as s:
            change(s, s.get_one(WipeOrder, other.id))


def test_nothing_is_begun_while_an_attempt_goes_on_or_before_everything_else_is_removed(cast: Cast) -> None:
    with write_session() as s:
        engagement, order = ordered(s, cast, cast.chen_jing, cast.wang_fang)
        attempt = run(s, cast, engagement, "G1")
        for hosts in (None, {"gpu01": {"state": "removed"}, "array01": {"state": "left"}}, {"gpu01": {"state": "removed"}}):
            if hosts is not None:
                report = {"hosts": hosts, "problem": None}
                s.add(TargetRemoval(id=new_id(), engagement_id=engagement.id, started_by="x", started_at=now(), finished_at=now(), report=report))
                s.flush()
            if hosts is None or "array01" in hosts:
                with pytest.raises(Refused, match="quadgate targets remove DEMO"):
                    wiping.begin(s, order_id=order.id, actor=command_line())
        attempt.finished_at = now() + timedelta(minutes=1)
        with pytest.raises(Refused, match="not removed"):
            wiping.begin(s, order_id=order.id, actor=command_line())
        attempt.status, attempt.finished_at = "running", None
        s.flush()
        with pytest.raises(Refused, match="is going on"):
            wiping.begin(s, order_id=order.id, actor=command_line())


def packed(files: dict[str, bytes]) -> bytes:
    """Return a pack as the probe makes it."""
    listed = [{"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in sorted(files.items())]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in {**files, "pack.json": json.dumps({"files": listed}).encode()}.items():
            row = tarfile.TarInfo(name)
            row.size = len(data)
            tar.addfile(row, io.BytesIO(data))
    return out.getvalue()


def begun(cast: Cast) -> tuple[str, str]:
    """Return engagement and order of a wipe that was begun, and whose playbook host has said `started`."""
    with write_session() as s:
        engagement, order = ordered(s, cast, cast.chen_jing, cast.wang_fang)
        wiping.begin(s, order_id=order.id, actor=command_line())
    folder = runs.folder_of(order.id, "wipe", "run-1")
    folder.mkdir(parents=True)
    for name in ("lock", "started"):
        (folder / name).touch()
    return engagement.id, order.id


def test_what_comes_home_is_kept_under_its_hash_and_a_drive_is_wiped_only_by_its_own_record(cast: Cast) -> None:
    from tests.integration.web_client import Browser, Robot

    engagement_id, order_id = begun(cast)
    folder = runs.folder_of(order_id, "wipe", "run-1")
    rows = [{"serial": "QF26K0A00101", "outcome": "wiped", "method": "sanitize"}, {"serial": "QF26K0A00102", "outcome": "failed", "why": "介质错误"}]
    record, slip = json.dumps({"facts": {"records": rows}}).encode(), b"{}"
    (folder / "staging" / "array01").mkdir(parents=True)
    (folder / "staging" / "array01" / "wipe.tar").write_bytes(packed({"wipe-record.json": record, "return-slip.json": slip}))
    (folder / "result.json").write_text(json.dumps({"status": "failed", "rc": 2, "replies": {}, "failures": [], "problem": None}))
    first = wiping.go_on(order_id, command_line())
    assert wiping.go_on(order_id, command_line()).finished_at == first.finished_at
    with read_session() as s:
        shown = wipe_seen(s, wipe_id=order_id, actor=cast.viewer)
        kept = {f.name: f for f in s.scalars(select(WipeFile))}
        assert {f.sha256 for f in kept.values()} <= referred(s)
        ended = s.scalars(select(AuditRow).where(AuditRow.action == "wipe.end")).one()
        assert set(s.scalars(select(HostLock.attempt_id))) == {None}
    assert (shown["state"], [(r["serial"], r["outcome"], r["why"]) for r in shown["records"]]) == (
        "not_wiped",
        [("QF26K0A00101", "wiped", ""), ("QF26K0A00102", "failed", "介质错误")],
    )
    assert store.read(kept["wipe-record.json"].sha256) == record
    assert {f["sha256"] for f in ended.data["files"]} == {f.sha256 for f in kept.values()}
    page, robot = Browser("wang.fang", "zh-CN"), Robot(cast.li_wei.user_id)
    where = f"/engagements/{engagement_id}/wipes"
    text = page.get(where).text
    assert [said in text for said in ("未全部擦除", "介质错误", "QF26K0A00101", "sanitize，块擦除", "陈静")] == [True] * 5
    assert page.get(f"{where}/files/{kept['wipe-record.json'].id}").content == record
    assert robot.get(f"/wipes/{order_id}").json()["records"] == shown["records"]
    assert robot.get(f"/wipes/files/{kept['return-slip.json'].id}").content == slip


def test_a_lost_playbook_host_is_not_followed_by_another_and_no_drive_counts_as_wiped(cast: Cast) -> None:
    _, order_id = begun(cast)
    order = wiping.go_on(order_id, command_line())
    assert order.finished_at is not None
    assert {drive["outcome"] for drive in order.report["drives"]} == {"unknown"}
    assert "may still be at work" in order.report["problem"]["en"]
    with pytest.raises(RuntimeError, match="about to be changed"), write_session() as s:
        s.get_one(WipeOrder, order_id).report = {"drives": [], "problem": None}


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {"facts": {"records": "wiped"}},
        {"facts": {"records": [{"serial": "S1", "outcome": "begun"}]}},
        {"facts": {"records": [{"serial": "S1", "outcome": "planned"}]}},
        {"facts": {"records": [{"serial": "S2", "outcome": "wiped"}]}},
        {"facts": {"records": [{"serial": "S1", "outcome": "wiped"}, {"serial": "S1", "outcome": "wiped"}]}},
        {"facts": {"records": [{"outcome": "wiped"}, "S1"]}},
    ],
)
def test_a_record_that_does_not_say_wiped_of_that_drive_exactly_once_says_nothing(document: Any) -> None:
    order = WipeOrder(drives=[{"serial": "S1", "model": "m", "host": "array01"}])
    report = wiping.report_of(order, {"array01": document, "array02": {"facts": {"records": [{"serial": "S1", "outcome": "wiped"}]}}}, {})
    assert [drive["outcome"] for drive in report["drives"]] == ["unknown"]


def test_a_wipe_is_ordered_and_withdrawn_at_the_page_and_by_rest(cast: Cast) -> None:
    from tests.integration.web_client import Browser, Robot

    with write_session() as s:
        engagement = engage(s, cast).id
    page, where = Browser("zhao.lei", "zh-CN"), f"/engagements/{engagement}/wipes"
    wrong = page.send(where, serial="QF26K0A00101", way="", reason="归还设备")
    assert (wrong.status_code, "归还设备" in wrong.text) == (422, True)
    assert page.send(where, serial="QF26K0A00101", way="format_user", reason="归还设备").status_code == 303
    assert all(said in page.get(where).text for said in ("E-1", "待双方确认", "QF26K0A00101"))
    assert "擦除 E-1，硬盘 1 块" in Browser("wang.fang", "zh-CN").get("/sign-off").text
    robot, stranger = Robot(cast.li_wei.user_id), Robot(cast.viewer.user_id)
    body = {"way": "sanitize_crypto", "serials": SERIALS, "reason": "归还"}
    made = [robot.post(f"/engagements/{engagement}/wipes", json=body, Idempotency_Key="wipe-number-2") for _ in range(2)]
    assert ([m.status_code for m in made], made[0].json()["id"]) == ([201, 201], made[1].json()["id"])
    assert stranger.post(f"/engagements/{engagement}/wipes", json=body).status_code == 403
    assert robot.post(f"/wipes/{made[0].json()['id']}/withdraw", json={"reason": "延期"}).json()["state"] == "withdrawn"
    listed = robot.get(f"/engagements/{engagement}/wipes").json()
    assert [w["state"] for w in listed["items"]] == ["withdrawn", "proposed"]
    assert page.send(f"{where}/{listed['items'][1]['id']}/withdraw", withdrawn="延期归还").status_code == 303
    assert "延期归还" in page.get(where).text
    assert "硬盘擦除" in page.get(f"/engagements/{engagement}").text
    assert 'id="order"' not in Browser("viewer", "zh-CN").get(where).text  # whom it is for stands there instead of the form
