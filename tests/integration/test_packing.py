"""The packing list is revised by both parties: what is in force, for which attempt, and what stays on record."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
import yaml
from sqlalchemy import select

from app.approvals.usecases import approve, pending
from app.attempts.models import Step
from app.attempts.usecases import attempt_view, start_attempt
from app.audit.models import AuditRow
from app.engagements.models import Engagement
from app.engagements.usecases import create_engagement, overview
from app.engine.context import load
from app.evidence.usecases import inputs
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, Conflict, Forbidden, Refused
from app.packing.models import PackingRevision
from app.packing.usecases import packing, preview, propose
from app.reports.repository import gather
from tests.integration.web_client import Browser, Robot
from tests.people import Cast, by_token
from tests.scenes import DEMO, decide, engage, finish, run

LATE = {"kind": "drive", "model": "QF-N7680", "serial": "QF26K0A00103", "host": "array01"}
SHORT = DEMO.replace("  - {kind: drive, model: QF-N7680, serial: QF26K0A00103, host: array01}\n", "", 1)
WHOLE: list[dict[str, Any]] = yaml.safe_load(DEMO)["packing_list"]
CAME = "第二批已到 / the rest has come"


def short(s: Any, cast: Cast) -> Engagement:
    """Register an engagement whose packing list lacks a drive, with its plan sealed."""
    return engage(s, cast, SHORT)


def test_a_revision_is_in_force_when_a_person_of_each_party_approved_it_and_not_before(cast: Cast) -> None:
    with write_session() as s:
        engagement = short(s, cast)
        assert overview(s, engagement_id=engagement.id, actor=cast.li_wei)["packing_warning"]
        before = list(engagement.packing_list)
        made = propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.li_wei)
        seen = packing(s, engagement_id=engagement.id, actor=cast.viewer)
        assert (seen["number"], seen["packing_list"], seen["revisions"][0]["state"]) == (0, before, "proposed")
        assert seen["revisions"][0]["changes"] == {"removed": [], "added": [LATE]}
        assert seen["revisions"][0]["warning"] is None
        decide(s, "packing", cast.chen_jing)
        assert engagement.packing_list == before
        decide(s, "packing", cast.wang_fang)
        assert engagement.packing_list == WHOLE
        seen = packing(s, engagement_id=engagement.id, actor=cast.li_wei)
        assert (seen["number"], seen["warning"], seen["revisions"][0]["state"]) == (1, None, "agreed")
        assert overview(s, engagement_id=engagement.id, actor=cast.li_wei)["packing_warning"] is None
        told = s.scalars(select(AuditRow).where(AuditRow.object_id == made.id).order_by(AuditRow.seq)).all()
        assert [row.action for row in told] == ["packing.propose", "packing.revise"]
        assert (told[1].data["added"], told[1].data["hash"]) == ([LATE], seen["revisions"][0]["hash"])


def test_attempts_keep_the_list_that_they_began_with_wherever_it_is_read(cast: Cast) -> None:
    with write_session() as s:
        engagement = short(s, cast)
        before = list(engagement.packing_list)
        old = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.li_wei)
        decide(s, "packing", cast.chen_jing, cast.wang_fang)
        finish(s, old, "fail")
        new = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        third = [*WHOLE, {"kind": "cable", "model": "DAC", "quantity": 4}]
        propose(s, engagement_id=engagement.id, entries=third, reason="线缆补登", actor=cast.li_wei)
        decide(s, "packing", cast.chen_jing, cast.wang_fang)
        ids = {old.id: before, new.id: WHOLE}
    with read_session() as s:
        for attempt_id, wanted in ids.items():
            assert inputs(s, attempt_id)["packing_list"] == wanted
            assert attempt_view(s, attempt_id=attempt_id, actor=cast.li_wei)["packing_list"] == wanted
            assert gather(s, attempt_id, {"files": []}).engagement["packing_list"] == wanted
            assert load(attempt_id, owner="x", node="n").variables()["site"]["packing_list"] == wanted
        assert packing(s, engagement_id=engagement.id, actor=cast.li_wei)["packing_list"] == third


def test_what_is_wrong_with_a_list_is_said_entry_by_entry_and_nothing_is_kept(cast: Cast) -> None:
    wrong = [
        ([*WHOLE, WHOLE[1]], "/packing_list/6/serial", "already"),
        ([{**WHOLE[0], "host": "array09"}], "/packing_list/0/host", "array09"),
        ([{"kind": "drive", "model": "X"}], "/packing_list/0/serial", "missing"),
        ([{**WHOLE[0], "serial": "<serial number>"}], "/packing_list/0/serial", "placeholder"),
        ([{**WHOLE[0], "colour": "blue"}], "/packing_list/0/colour", "unknown"),
        ([], "/packing_list", "1 to 5000"),
        ("all of it", "/packing_list", "a list"),
    ]
    with write_session() as s:
        engagement = short(s, cast)
        for entries, where, word in wrong:
            with pytest.raises(BadInput) as caught:
                propose(s, engagement_id=engagement.id, entries=entries, reason=CAME, actor=cast.li_wei)
            assert word in next(e for e in caught.value.errors if e.pointer == where).text("en"), entries
        with pytest.raises(BadInput) as caught:
            propose(s, engagement_id=engagement.id, entries=WHOLE, reason=" ", actor=cast.li_wei)
        assert [e.pointer for e in caught.value.errors] == ["/reason"]
        with pytest.raises(Refused, match="says this already"):
            propose(s, engagement_id=engagement.id, entries=list(reversed(engagement.packing_list)), reason=CAME, actor=cast.li_wei)
        with pytest.raises(Forbidden):
            propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.viewer)
        assert s.scalars(select(PackingRevision)).all() == []


def test_a_newer_proposal_replaces_one_that_waits_and_a_look_at_an_older_list_proposes_nothing(cast: Cast) -> None:
    with write_session() as s:
        engagement = short(s, cast)
        base = preview(s, engagement_id=engagement.id, entries=WHOLE, actor=cast.li_wei)["base"]
        first = propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.li_wei)
        hash_of_first = next(i for i in pending(s, actor=cast.chen_jing) if i["object_kind"] == "packing")["object_hash"]
        propose(s, engagement_id=engagement.id, entries=[*WHOLE, {"kind": "cable", "model": "DAC"}], reason=CAME, actor=cast.li_wei)
        assert [r["state"] for r in packing(s, engagement_id=engagement.id, actor=cast.li_wei)["revisions"]] == ["proposed", "replaced"]
        with pytest.raises(Refused, match="newer proposal"):
            approve(s, object_kind="packing", object_id=first.id, object_hash=hash_of_first, decision="approve", actor=cast.chen_jing)
        with pytest.raises(Forbidden):
            approve(s, object_kind="packing", object_id=first.id, object_hash=hash_of_first, decision="approve", actor=by_token(cast.chen_jing))
        decide(s, "packing", cast.chen_jing, cast.wang_fang)
        with pytest.raises(Conflict, match="revised since"):
            propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.li_wei, base=base)


def test_a_rejected_revision_changes_nothing(cast: Cast) -> None:
    with write_session() as s:
        engagement = short(s, cast)
        before = list(engagement.packing_list)
        propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.li_wei)
        decide(s, "packing", cast.wang_fang, decision="reject")
        decide(s, "packing", cast.chen_jing)
        assert engagement.packing_list == before
        assert packing(s, engagement_id=engagement.id, actor=cast.li_wei)["revisions"][0]["state"] == "rejected"


def test_once_g1_has_passed_its_packing_list_stands(cast: Cast) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        propose(s, engagement_id=engagement.id, entries=WHOLE[:-1], reason="退回网卡", actor=cast.li_wei)
        run(s, cast, engagement, "G1", "pass")
        with pytest.raises(Refused, match="G1 has passed"):
            propose(s, engagement_id=engagement.id, entries=WHOLE[:-2], reason="退回网卡", actor=cast.li_wei)
        assert not [i for i in pending(s, actor=cast.chen_jing) if i["object_kind"] == "packing"]
        closed = packing(s, engagement_id=engagement.id, actor=cast.li_wei)["closed"]
        assert closed
        assert "台账" in closed["zh-CN"]


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_at_its_page_a_revision_is_looked_at_proposed_and_decided(cast: Cast, language: str) -> None:
    with write_session() as s:
        engagement = create_engagement(s, text=SHORT, actor=cast.li_wei).id
    page, where = Browser("li.wei", language), f"/engagements/{engagement}/packing"
    text = unescape(page.get(where).text.partition('name="text"')[2].partition(">")[2].partition("</textarea>")[0])
    assert yaml.safe_load(text) == [p for p in WHOLE if p != LATE]
    more = f"{text}- {{kind: drive, model: QF-N7680, serial: QF26K0A00103, host: array01}}\n"
    looked = page.send(where, text=more, do="look")
    assert (looked.status_code, "QF26K0A00103" in looked.text.partition('id="revise"')[2]) == (200, True)
    base = looked.text.partition('name="base" value="')[2].partition('"')[0]
    assert page.send(where, text=more, reason="", do="keep", base=base).status_code == 422
    assert page.send(where, text="- [", reason=CAME, do="look").status_code == 422
    assert page.send(where, text=more, reason=CAME, do="keep", base=base).headers["location"] == where
    for login in ("chen.jing", "wang.fang"):
        person = Browser(login, language)
        inbox = person.get("/sign-off").text
        address = "/sign-off/packing/" + inbox.partition("/sign-off/packing/")[2].partition('"')[0]
        shown = person.get(address).text
        digest = shown.partition('name="object_hash" value="')[2].partition('"')[0]
        assert person.send(address, object_hash=digest, decision="approve").status_code == 303
    after = unescape(page.get(f"/engagements/{engagement}").text)
    assert "4 ordered" not in after
    assert "订购 4 件" not in after


def test_by_rest_it_is_proposed_and_read(cast: Cast) -> None:
    with write_session() as s:
        engagement = create_engagement(s, text=SHORT, actor=cast.li_wei).id
    robot = Robot(cast.li_wei.user_id)
    answer = robot.post(f"/engagements/{engagement}/packing-list", json={"packing_list": WHOLE, "reason": CAME})
    assert answer.status_code == 201
    assert answer.json()["revisions"][0]["changes"]["added"] == [LATE]
    assert robot.get(f"/engagements/{engagement}/packing-list").json()["number"] == 0
    wrong = robot.post(f"/engagements/{engagement}/packing-list", json={"packing_list": [{**LATE, "host": "moon"}], "reason": CAME})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/packing_list/0/host")


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_the_unpacking_form_shows_order_and_packing_list_beside_it_as_the_attempt_began_with_them(cast: Cast, language: str) -> None:
    text = SHORT.replace("packing_list:\n", "packing_list:\n  - {kind: cable, model: DAC-3M, quantity: 8}\n", 1)
    with write_session() as s:
        engagement = engage(s, cast, text)
        attempt = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        step = s.scalars(select(Step).where(Step.attempt_id == attempt.id, Step.kind == "manual")).one()
        attempt.status = step.status = "waiting"
        propose(s, engagement_id=engagement.id, entries=WHOLE, reason=CAME, actor=cast.li_wei)
        decide(s, "packing", cast.chen_jing, cast.wang_fang)
        address = f"/attempts/{attempt.id}/steps/{step.id}"
    shown = Browser("li.wei", language).get(address).text
    packed = [piece for piece in yaml.safe_load(text)["packing_list"] if "serial" in piece]
    assert all(piece["serial"] in shown for piece in packed)
    assert LATE["serial"] not in shown
    assert ("DAC-3M" in shown, "× 8" in shown, "MI308X" in shown) == (True, True, True)  # a counted item, and what was ordered and not packed
