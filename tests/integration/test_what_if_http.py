"""A judged attempt under another plan: REST and page. It shows, keeps nothing, and never opens what is sealed."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from app.accounts.actor import SYSTEM
from app.attempts.models import VerdictRevision
from app.attempts.usecases import start_attempt
from app.audit.models import AuditRow
from app.evidence.judgement import judge_attempt
from app.kit.db import write_session
from tests.integration.web_client import Browser, Robot
from tests.people import Cast
from tests.scenes import bring, engage, finish, run, within
from tests.unit.rack.simulate import evidence

STRICTER = "g1: {link: {mtu_min: 9000 B}}"


@pytest.fixture
def arrival(cast: Cast) -> str:
    """A judged G1 whose evidence is the rack's."""
    with write_session() as s:
        attempt = start_attempt(s, engagement_id=engage(s, cast).id, gate="G1", actor=cast.li_wei)
        attempt.status = "running"
        for path, data in evidence().items():
            if path != "evidence/inputs.json":
                bring(s, attempt, path, data)
        assert judge_attempt(within(s), attempt_id=attempt.id, actor=SYSTEM).verdict == "pass"
        finish(s, attempt, None)
        return attempt.id


def kept() -> tuple[int, int]:
    with write_session() as s:
        return len(s.execute(select(VerdictRevision.id)).all()), len(s.execute(select(AuditRow.seq)).all())


def test_rest_and_page_show_what_another_plan_would_change_and_keep_nothing(cast: Cast, arrival: str) -> None:
    robot, viewer = Robot(cast.li_wei.user_id), Browser(cast.viewer.login)
    before = kept()
    assert robot.get(f"/attempts/{arrival}/whatif").status_code == 200
    assert kept() == before
    told = robot.http.get(f"/api/v1/attempts/{arrival}/whatif", params={"plan": STRICTER}).json()
    assert (told["sealed"]["verdict"], told["other"]["verdict"]) == ("pass", "fail")
    assert [c["check"] for c in told["checks"]] == ["g1.rdma.mtu"]
    alone = robot.get(f"/attempts/{arrival}/whatif").json()
    assert (alone["judge"]["same"], alone["plan"], alone["checks"], alone["before"]["verdict"]) == (True, [], [], "pass")
    assert f"/attempts/{arrival}/whatif" in viewer.get(f"/attempts/{arrival}").text
    page = viewer.send(f"/attempts/{arrival}/whatif", text=STRICTER)
    assert page.status_code == 200
    for word in ("This is no verdict", "g1.rdma.mtu", "g1.link.mtu_min", "Fail"):
        assert word in page.text
    sent = viewer.send(f"/attempts/{arrival}/whatif", files={"file": ("plan.yaml", STRICTER.encode())})
    assert "g1.rdma.mtu" in sent.text
    chinese = Browser(cast.viewer.login, language="zh_CN").send(f"/attempts/{arrival}/whatif", text=STRICTER)
    assert "这不是判定" in chinese.text
    assert kept()[0] == before[0]


def test_a_plan_that_cannot_be_used_is_named_by_its_field(cast: Cast, arrival: str) -> None:
    answer = Robot(cast.li_wei.user_id).http.get(f"/api/v1/attempts/{arrival}/whatif", params={"plan": "g1: {leek: 1}"})
    assert answer.status_code == 422
    assert "leek" in answer.text
    page = Browser(cast.viewer.login).send(f"/attempts/{arrival}/whatif", text="g1: {leek: 1}")
    assert (page.status_code, "leek" in page.text) == (422, True)


@pytest.mark.parametrize("status", ["running", "canceled"])
def test_of_a_sealed_main_gate_nothing_is_told(cast: Cast, status: str) -> None:
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        attempt = start_attempt(s, engagement_id=engagement.id, gate="G3", actor=cast.li_wei)
        attempt.status = status
        attempt_id = attempt.id
    answer = Robot(cast.li_wei.user_id).get(f"/attempts/{attempt_id}/whatif")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_verdict_yet")
    page = Browser(cast.viewer.login).send(f"/attempts/{attempt_id}/whatif", text=STRICTER)
    assert page.status_code == 409
    assert "no verdict" in page.text
