"""Every route of the pages and of the API, asked by people whom it is not for: nothing is shown, and nothing is done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import func, select

from app.accounts.models import User
from app.attempts.models import Attempt, Step
from app.attempts.usecases import start_attempt
from app.audit.models import AuditRow
from app.deviations.usecases import record_deviation
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.plans.usecases import current
from app.wipes.usecases import order_wipe
from tests.integration.hostile import api_addresses, web_addresses
from tests.integration.web_client import Browser, Robot
from tests.people import Cast, _password_hash
from tests.scenes import bring, engage, finish

OWN = ("/account", "/sign-in", "/sign-out", "/sign-off")  # a person's own things, and what waits for this very person


@pytest.fixture
def ids(cast: Cast) -> dict[str, str]:
    """An engagement with an attempt that waits for a form, one that ended, an entry of the register, and somebody of another customer."""
    with write_session() as s:
        engagement = engage(s, cast)
        over = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        bring(s, over, "evidence/survey/gpu01/host.json", b"{}")
        finish(s, over, None, "error")
        waiting = start_attempt(s, engagement_id=engagement.id, gate="G1", actor=cast.li_wei)
        step = s.scalars(select(Step).where(Step.attempt_id == waiting.id, Step.kind == "manual")).one()
        waiting.status = step.status = "waiting"
        told = {
            "kind": "punch",
            "gate": "G1",
            "what": "螺丝缺失",
            "reason": "到货短少",
            "owner_party": "vendor",
            "owner": "李伟",
            "due": "2199-01-01",
        }
        entry = record_deviation(s, engagement_id=engagement.id, actor=cast.li_wei, **told)
        wipe = order_wipe(s, engagement_id=engagement.id, way="format_user", serials=["QF26K0A00101"], reason="借测期满", actor=cast.li_wei)
        row = {"login": "other.customer", "name": "外人", "title": "", "party": "customer", "roles": ["engineer", "approver"]}
        stranger = User(**row, password_hash=_password_hash(), created_at=now())
        s.add(stranger)
        s.flush()
        return {
            "engagement_id": engagement.id,
            "attempt_id": waiting.id,
            "over": over.id,
            "step_id": step.id,
            "deviation_id": entry.id,
            "wipe_id": wipe.id,
            "file_id": "0" * 36,
            "gate": "G1",
            "kind": "plan",
            "object_id": current(s, engagement.id).id,
            "report_id": "0" * 36,
            "sha256": "0" * 64,
            "name": "soak",
            "token_id": "0" * 36,
            "revision": "0",
            "stranger": stranger.id,
        }


def addresses(found: list[tuple[str, str]], ids: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield method, pattern and address of every route, filled with what there is."""
    for method, pattern in found:
        for attempt in {ids["attempt_id"], ids["over"]} if "{attempt_id}" in pattern else {""}:
            known = {**ids, "attempt_id": attempt}
            yield method, pattern, re.sub(r"\{(\w+)\}", lambda m, known=known: known[m[1]], pattern)


def rows() -> int:
    """Return how many things were done so far, sign-ins aside."""
    with read_session() as s:
        return s.scalar(select(func.count()).select_from(AuditRow).where(AuditRow.object_kind != "user")) or 0


BODIES: dict[str, Any] = {
    "/engagements": {"engagement": {}},
    "/cancel": {"reason": "because"},
    "/plan": {"differences": {"g3": {"agreement_max": "0.04"}}},
    "/causes": {"event": "boot:x", "kind": "power", "text": "power"},
    "/deviations": {"kind": "punch", "gate": "G1", "what": "xx", "reason": "xx", "owner_party": "vendor", "owner": "x", "due": "2199-01-01"},
    "/close": {"closing": "done"},
    "/wipes": {"way": "format_user", "serials": ["QF26K0A00101"], "reason": "because"},
    "/packing-list": {"packing_list": [{"kind": "array", "model": "FX100", "serial": "S-1"}], "reason": "because"},
    "/withdraw": {"reason": "because"},
    "/approvals": {"object_kind": "plan", "object_id": "x", "object_hash": "x", "decision": "approve"},
}
FORM = {"reason": "because", "confirmation": "DEMO-G1", "text": "g3: {agreement_max: 0.04}", "do": "keep", "gate": "G1", "said": ""}


def asked(http: Any, method: str, pattern: str, address: str, csrf: str = "", number: int = 0) -> int:
    more: dict[str, Any] = {}
    if address.startswith("/api"):
        body = next((b for end, b in BODIES.items() if pattern.endswith(end)), None)
        more = {"json": body, "headers": {"If-Match": "*", "Idempotency-Key": f"key-number-{number}"}}
    elif method == "POST":
        more = {"data": {**FORM, "csrf": csrf}, "headers": {"Origin": "http://testserver"}}
    return int(http.request(method, address, **more).status_code)


@pytest.mark.parametrize("who", ["nobody", "another customer"])
def test_nobody_and_nobody_of_another_customer_gets_an_answer_by_any_route(cast: Cast, ids: dict[str, str], who: str) -> None:
    robot = Robot(ids["stranger"])
    page = Browser("" if who == "nobody" else "other.customer")
    api = api_addresses(robot)
    if who == "nobody":
        robot.http.headers.pop("Authorization")
    before, csrf, answered = rows(), page.csrf(), []
    for number, (method, pattern, address) in enumerate([*addresses(api, ids), *addresses(web_addresses(), ids)]):
        if pattern in ("/sign-in", "/sign-out"):
            continue  # the door itself
        status = asked(robot.http if address.startswith("/api") else page.http, method, pattern, address, csrf, number)
        about = "{" in pattern and not pattern.startswith(OWN)
        wanted = {401, 303, 403} if who == "nobody" else {403, 404, 409, 422} if about else {200, 201, 303, 403, 404, 422}
        if status not in wanted:
            answered.append(f"{method} {pattern}: {status}")
    assert answered == []
    assert rows() == before


def test_whoever_may_only_look_does_nothing_by_any_route(cast: Cast, ids: dict[str, str]) -> None:
    robot, page = Robot(cast.viewer.user_id), Browser("viewer")
    before, csrf, done = rows(), page.csrf(), []
    for number, (method, pattern, address) in enumerate([*addresses(api_addresses(robot), ids), *addresses(web_addresses(), ids)]):
        if method != "POST" or pattern.startswith(OWN):
            continue
        status = asked(robot.http if address.startswith("/api") else page.http, method, pattern, address, csrf, number)
        if status not in (403, 404, 409):  # 409: by the state of things, whoever asks
            done.append(f"{method} {pattern}: {status}")
    with read_session() as s:
        assert s.get_one(Attempt, ids["attempt_id"]).cancel_requested_at is None
    assert done == []
    assert rows() == before


def test_what_an_approver_decides_at_another_engagement_is_not_his(cast: Cast, ids: dict[str, str]) -> None:
    page = Browser("other.customer")
    assert page.get(f"/sign-off/plan/{ids['object_id']}").status_code == 404
    assert page.send(f"/sign-off/plan/{ids['object_id']}", object_hash="x", decision="approve").status_code == 404
