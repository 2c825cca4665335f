"""The REST API: problem documents, idempotency, paging, preconditions, who may do what."""

from __future__ import annotations

from typing import Any

import pytest

from app.kit.db import new_id
from tests.integration.web_client import DEMO, Browser, Robot, demo_engagement, seal
from tests.people import Cast

YAML = {"Content_Type": "application/yaml"}


def assert_problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["code"] == code
    assert body["status"] == status
    assert body["request_id"] == answer.headers["x-request-id"]
    assert len(body["detail"]) > 10
    return body


def test_an_engagement_is_created_from_yaml_and_read_again(cast: Cast) -> None:
    robot = Robot(cast.li_wei.user_id)
    made = robot.post("/engagements", content=DEMO.encode(), **YAML)
    assert made.status_code == 201, made.text
    read = robot.http.get(made.headers["location"])
    assert read.json()["code"] == "DEMO"
    assert [gate["gate"] for gate in read.json()["gates"]] == ["G1", "G2", "G3", "G4"]
    assert read.headers["etag"] == made.headers["etag"]
    assert robot.get(f"/engagements/{read.json()['id']}", **{"If-None-Match": read.headers["etag"]}).status_code == 304


def test_each_wrong_field_of_a_file_is_one_entry_with_its_pointer(cast: Cast) -> None:
    bad = DEMO.replace("  contract: HT-DEMO-0001", "  contrakt: 7").encode()
    for language, word in (("en", "contrakt"), ("zh-CN", "contrakt")):
        answer = Robot(cast.li_wei.user_id, language).post("/engagements", content=bad, **YAML)
        body = assert_problem(answer, 422, "bad_engagement_file")
        assert any(word in error["pointer"] for error in body["errors"])
        assert answer.headers["content-language"] == language
    assert body["errors"][0]["message"] != Robot(cast.li_wei.user_id).post("/engagements", content=bad, **YAML).json()["errors"][0]["message"]


def test_every_error_is_a_problem_document(cast: Cast) -> None:
    robot = Robot(cast.li_wei.user_id)
    assert_problem(robot.get("/nothing"), 404, "not_found")
    assert_problem(robot.http.put("/api/v1/engagements"), 405, "method_not_allowed")
    assert "allow" in robot.http.put("/api/v1/engagements").headers
    assert_problem(robot.get(f"/engagements/{new_id()}"), 404, "no_such_engagement")
    assert_problem(robot.get(f"/attempts/{new_id()}/verdict"), 404, "no_such_attempt")
    body = assert_problem(robot.get("/engagements?limit=0"), 422, "bad_request")
    assert body["errors"][0]["pointer"] == "/query/limit"
    assert_problem(robot.get("/engagements?cursor=garbage"), 422, "bad_cursor")
    assert robot.post("/engagements", content=b"x", Content_Type="image/png").status_code == 415
    assert_problem(robot.post("/engagements", content=b"\xff\xfe", **YAML), 422, "not_utf8")
    robot.http.headers.pop("Authorization")
    assert_problem(robot.get("/engagements"), 401, "unauthenticated")
    assert "bearer" in robot.get("/engagements").headers["www-authenticate"].lower()


def test_a_crash_is_a_problem_document_without_its_detail(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.api import engagements

    def broken(*_a: Any, **_k: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(engagements.engagements, "board", broken)
    answer = Robot(cast.li_wei.user_id).get("/engagements")
    assert_problem(answer, 500, "internal")
    assert "secret" not in answer.text


def test_a_start_needs_a_key_and_the_same_key_starts_once(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    seal(cast, engagement)
    robot = Robot(cast.li_wei.user_id)
    path = f"/engagements/{engagement}/gates/G1/attempts"
    assert_problem(robot.post(path), 400, "idempotency_key_missing")
    assert_problem(robot.post(path, Idempotency_Key="short"), 400, "idempotency_key_malformed")
    first = robot.post(path, json={"rehearsal": False}, Idempotency_Key="start-g1-once")
    assert first.status_code == 201, first.text
    again = robot.post(path, json={"rehearsal": False}, Idempotency_Key="start-g1-once")
    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    assert_problem(robot.post(path, json={"rehearsal": True}, Idempotency_Key="start-g1-once"), 422, "idempotency_key_reused")
    assert_problem(robot.post(path, Idempotency_Key="start-g1-twice"), 409, "attempt_active")
    other = Robot(cast.zhao_lei.user_id)  # the key is the caller's own
    assert_problem(other.post(path, json={"rehearsal": False}, Idempotency_Key="start-g1-once"), 409, "attempt_active")


def test_a_refused_start_stores_nothing_so_the_same_key_may_try_again(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    robot = Robot(cast.li_wei.user_id)
    path = f"/engagements/{engagement}/gates/G1/attempts"
    assert_problem(robot.post(path, Idempotency_Key="start-when-sealed"), 409, "plan_not_sealed")
    seal(cast, engagement)
    assert robot.post(path, Idempotency_Key="start-when-sealed").status_code == 201


def test_a_change_of_the_plan_needs_the_version_that_was_read(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    robot = Robot(cast.li_wei.user_id)
    tag = robot.get(f"/engagements/{engagement}").headers["etag"]
    body = {"differences": {"g3": {"agreement_max": "0.04"}}}
    path = f"/engagements/{engagement}/plan"
    assert_problem(robot.post(path, json=body), 428, "if_match_missing")
    assert_problem(robot.post(path, json=body, If_Match='"other"'), 412, "changed_since")
    done = robot.post(path, json=body, If_Match=tag)
    assert done.status_code == 201, done.text
    assert done.json()["plan"]["revision"] > 0
    assert done.json()["plan"]["data"]["g3"]["agreement_max"] == "0.04"
    assert_problem(robot.post(path, json={"differences": {"g3": {"typo": 1}}}, If_Match="*"), 422, "bad_plan")


def test_the_plan_view_holds_the_chances_that_are_shown_before_sealing(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    robot = Robot(cast.li_wei.user_id)
    nothing = {"ttft_p50_drop": None, "throughput_gain": None, "run_variation": "0.02"}  # then the published figures stand in
    assert robot.post(f"/engagements/{engagement}/plan", json={"differences": {"expected": nothing}}, If_Match="*").status_code == 201
    view = robot.get(f"/engagements/{engagement}/plan").json()
    assert view["hash"] == robot.get(f"/engagements/{engagement}").json()["plan"]["hash"] == view["odds"]["plan_hash"]
    assert sum(float(row["chance"]) for row in view["odds"]["verdicts"].values()) == pytest.approx(1, abs=1e-3)
    assert any("25.96 %" in warning["en"] and "25.96 %" in warning["zh-CN"] for warning in view["odds"]["warnings"])
    assert "16 bytes of KV a token" in view["odds"]["cost"]["assumptions"][0]["en"]


def test_a_token_can_never_approve_and_a_session_can(cast: Cast) -> None:
    demo_engagement(cast)
    robot = Robot(cast.wang_fang.user_id)
    item = robot.get("/approvals").json()["items"][0]
    body = {name: item[name] for name in ("object_kind", "object_id", "object_hash")} | {"decision": "approve"}
    problem = assert_problem(robot.post("/approvals", json=body), 403, "approve_in_person")
    assert "token" in problem["detail"]
    browser = Browser("wang.fang")
    assert_problem(browser.http.post("/api/v1/approvals", json=body), 403, "csrf")
    done = browser.http.post("/api/v1/approvals", json=body, headers={"X-CSRF-Token": browser.csrf()})
    assert done.status_code == 201, done.text
    assert done.json()["party"] == "customer"


def test_events_are_paged_by_cursor_without_gap_or_repeat(cast: Cast) -> None:
    from tests.integration.test_web_stream import seeded

    attempt = seeded(cast)
    robot = Robot(cast.li_wei.user_id)
    whole = [event["id"] for event in robot.get(f"/attempts/{attempt}/events").json()["items"]]
    page = robot.get(f"/attempts/{attempt}/events?limit=2")
    got = [event["id"] for event in page.json()["items"]]
    following = page.headers["link"].split(">")[0].strip("<")
    last = robot.http.get(following)
    assert got + [event["id"] for event in last.json()["items"]] == whole
    assert "link" not in last.headers
    assert_problem(robot.get(f"/attempts/{attempt}/samples?cursor={page.json()['next']}"), 422, "bad_cursor")  # of another list
    assert robot.get(f"/attempts/{attempt}/stream").headers["content-type"].startswith("text/event-stream")
    assert_problem(robot.get(f"/attempts/{attempt}/verdict"), 404, "no_verdict_yet")
    assert robot.get(f"/attempts/{attempt}/reports").json() == {"items": []}


def test_engagements_are_paged_in_the_order_of_the_board(cast: Cast) -> None:
    from app.engagements.usecases import create_engagement
    from app.kit.db import write_session

    with write_session() as s:
        for n in range(3):
            create_engagement(s, text=DEMO.replace("code: DEMO", f"code: E{n}"), actor=cast.li_wei)
    robot = Robot(cast.li_wei.user_id)
    codes, path = [], "/api/v1/engagements?limit=2"
    while path:
        page = robot.http.get(path)
        codes += [item["code"] for item in page.json()["items"]]
        path = page.headers["link"].split(">")[0].strip("<") if "link" in page.headers else ""
    assert sorted(codes) == ["E0", "E1", "E2"]
    assert codes == [item["code"] for item in robot.get("/engagements").json()["items"]]


@pytest.mark.parametrize(("who", "status"), [("li_wei", 202), ("zhao_lei", 202), ("viewer", 403), ("chen_jing", 403)])
def test_a_cancel_takes_the_permission_and_a_reason(cast: Cast, who: str, status: int) -> None:
    engagement = demo_engagement(cast)
    started = Robot(cast.li_wei.user_id).post(f"/engagements/{engagement}/gates/G2/attempts", json={"rehearsal": True}, Idempotency_Key="rehearse-1")
    path = f"/attempts/{started.json()['id']}/cancel"
    robot = Robot(getattr(cast, who).user_id)
    assert robot.post(path, json={}).status_code == 422
    assert robot.post(path, json={"reason": "the site lost cooling"}).status_code == status


@pytest.mark.parametrize(
    "body",
    [
        '{"differences":{"g2":{"runs":4},"g2":{"runs":5}}}',
        '{"differences":{"g2":{"repeatability_cv_max":NaN}}}',
        '{"differences":{"plan":{"x":"\\ud800"}}}',
        '{"differences":{"\\ud800":1}}',
        '{"differences":{"plan":{"x":"a\\u0000b"}}}',
        '{"differences":{"g2":{"runs":' + "9" * 5000 + "}}}",
        '{"differences":' + '{"a":' * 3000 + "1" + "}" * 3001,
        '{"differences":' + '{"a":' * 100 + "1" + "}" * 101,
        '{"differences":',
        '\ufeff{"differences":{}}',
    ],
)
def test_json_that_two_readers_could_take_differently_is_refused_with_the_reason(cast: Cast, body: str) -> None:
    engagement = demo_engagement(cast)
    robot = Robot(cast.li_wei.user_id)
    before = robot.get(f"/engagements/{engagement}").json()
    answer = robot.post(f"/engagements/{engagement}/plan", content=body.encode(), Content_Type="application/json", If_Match="*")
    problem = assert_problem(answer, 422, "bad_request")
    assert problem["errors"][0]["code"] == "json_invalid"
    assert len(problem["errors"][0]["message"]) > len("The body is not valid JSON: .")
    assert robot.get(f"/engagements/{engagement}").json() == before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"differences":' + b'{"a":' * 100 + b"1" + b"}" * 101, "嵌套超过 60 层"),
        (b'{"differences":{"g2":{"runs":' + b"9" * 5000 + b"}}}", "有整数长达 5000 位，超过 4300 位"),
        (b'{"differences":{"g2":{"runs":1,"runs":2}}}', '同一对象中键 "runs" 重复'),
        (b'{"differences":{"g2":{"runs":NaN}}}', "NaN 不是 JSON 数值"),
        ('{"differences":{}}'.encode("utf-16"), "请求体不是 UTF-8 文本"),
    ],
    ids=["deep", "digits", "twice", "nan", "utf-16"],
)
def test_a_chinese_reader_is_told_in_chinese_why_json_is_refused(cast: Cast, body: bytes, reason: str) -> None:
    engagement = demo_engagement(cast)
    robot = Robot(cast.li_wei.user_id, "zh-CN")
    answer = robot.post(f"/engagements/{engagement}/plan", content=body, Content_Type="application/json", If_Match="*")
    assert answer.json()["errors"][0]["message"] == f"请求体不是有效的 JSON：{reason}。"


@pytest.mark.parametrize("number", ["1e999999999", "1e-999999999", '"1e999999999"'])
def test_a_number_beyond_reason_is_refused_by_its_field(cast: Cast, number: str) -> None:
    engagement = demo_engagement(cast)
    body = f'{{"differences":{{"g2":{{"runs":{number},"repeatability_cv_max":{number}}}}}}}'
    answer = Robot(cast.li_wei.user_id).post(f"/engagements/{engagement}/plan", content=body.encode(), Content_Type="application/json", If_Match="*")
    problem = assert_problem(answer, 422, "bad_plan")
    assert {"/g2/runs", "/g2/repeatability_cv_max"} <= {error["pointer"] for error in problem["errors"]}


@pytest.mark.parametrize("text", ["", "[]", "hello", "a: !!python/name:os.system x", "[" * 5000, "plan: [1]"])
def test_a_file_that_is_no_engagement_is_refused_and_nothing_is_kept_of_it(cast: Cast, text: str) -> None:
    robot = Robot(cast.li_wei.user_id)
    problem = assert_problem(robot.post("/engagements", content=text.encode(), **YAML), 422, "bad_engagement_file")
    assert not any(error["message"].startswith("plan:") for error in problem["errors"] if error["pointer"] == "")
    assert all(not error["pointer"].endswith("/") for error in problem["errors"])
    assert robot.get("/engagements").json()["items"] == []
