"""What a page refuses: why a token cannot sign and who can, and a heading and a title in the page's own language."""

from __future__ import annotations

import re

import pytest

from app.kit.db import new_id
from tests.integration.web_client import Browser, Robot, demo_engagement
from tests.people import Cast


@pytest.mark.parametrize(
    ("language", "why", "what"), [("en", "cannot sign", "signs in with login and password"), ("zh-CN", "不能签署", "以登录名和密码登录")]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_at_the_sign_off_inbox_is_told_that_it_cannot_sign_and_what_to_do(
    cast: Cast, language: str, why: str, what: str, method: str
) -> None:
    robot = Robot(cast.wang_fang.user_id, language)
    robot.http.cookies.set("qg_lang", language)
    for path in ("/sign-off", f"/sign-off/plan/{new_id()}"):
        answer = robot.http.request(method, path, follow_redirects=False)
        assert answer.status_code == 403, (path, answer.text)
        told = answer.json()
        assert (answer.headers["content-type"], told["code"]) == ("application/problem+json", "token_cannot_sign")
        assert why in told["detail"]
        assert what in told["detail"]
        assert "http://testserver/sign-off" in told["detail"]
        page = robot.http.request(method, path, headers={"Accept": "text/html"})
        assert page.status_code == 403
        assert page.headers["content-type"].startswith("text/html")
        assert why in page.text


def test_a_token_at_another_page_is_led_to_the_api_and_a_person_without_one_to_the_door(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    answer = Robot(cast.li_wei.user_id).http.get(f"/engagements/{engagement}", follow_redirects=False)
    assert answer.status_code == 403
    assert "/api/v1" in answer.json()["detail"]
    for path in ("/sign-off", f"/engagements/{engagement}"):
        assert Browser().get(path).headers["location"].startswith("/sign-in?next=")


def test_a_token_that_approves_by_the_api_is_told_where_its_person_decides(cast: Cast) -> None:
    body = {"object_kind": "plan", "object_id": new_id(), "object_hash": "sha256:0", "decision": "approve"}
    for language, words in (("en", "sign-off inbox"), ("zh-CN", "待确认事项")):
        told = Robot(cast.wang_fang.user_id, language).post("/approvals", json=body).json()
        assert words in told["detail"], told


@pytest.mark.parametrize(("language", "heading"), [("en", "Not found"), ("zh-CN", "未找到")])
@pytest.mark.parametrize("login", ["li.wei", ""])
def test_a_page_that_is_not_there_says_so_in_title_and_heading_in_its_own_language(cast: Cast, language: str, heading: str, login: str) -> None:
    page = Browser(login, language).get("/nothing/here")
    assert page.status_code == 404
    assert f'<html lang="{language}"' in page.text
    assert page.headers["content-language"] == language
    assert f"<title>{heading} · Quadgate</title>" in page.text
    assert re.search(rf"<h1>\s*{heading}\s*</h1>", page.text)
