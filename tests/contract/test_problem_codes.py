"""Every problem leads to an explanation: the `type` of each is an anchor of the page that the service serves, and of docs/problems.md."""

from __future__ import annotations

import re

import pytest

from app.api.codes import codes, type_of
from tests.integration.web_client import Browser, Robot
from tests.people import Cast
from tools import problems_page


def test_the_list_is_what_the_code_declares() -> None:
    found = problems_page.declared()
    assert problems_page.CODES.read_text(encoding="utf-8") == problems_page.as_json(found), "run: python tools/problems_page.py"
    assert problems_page.PAGE.read_text(encoding="utf-8") == problems_page.as_page(found), "run: python tools/problems_page.py"
    assert {"sign_off_missing", "stopped", "only_g3", "unsupported_media_type", "bad_deviation", "database_away", "too_large"} <= set(found)


@pytest.mark.parametrize(("language", "words"), [("en", "There is nothing at …."), ("zh-CN", "… 不存在。")])
def test_each_code_has_its_anchor_on_the_page_and_in_the_documentation(cast: Cast, language: str, words: str) -> None:
    page = Browser("li.wei", language).get("/api/v1/docs").text
    anchors = re.findall(r'id="([^"]+)"', page)
    documented = re.findall(r'id="([^"]+)"', problems_page.PAGE.read_text(encoding="utf-8"))
    assert len(anchors) == len(set(anchors))
    for code in codes():
        address, _, anchor = type_of(code).partition("#")
        assert address == "/api/v1/docs"
        assert anchor in anchors
        assert anchor in documented
    assert words in page


def test_a_code_without_an_entry_has_no_address_that_leads_nowhere() -> None:
    assert type_of("of_a_later_version") == "about:blank"


def test_what_the_api_answers_leads_to_its_entry(cast: Cast) -> None:
    robot = Robot(cast.li_wei.user_id)
    answers = [robot.get("/nothing"), robot.get("/engagements?limit=0"), robot.post("/engagements", content=b"x"), robot.http.get("/api/v1/%00")]
    anonymous = Robot(cast.li_wei.user_id)
    anonymous.http.headers.pop("Authorization")
    answers += [anonymous.get("/engagements"), robot.http.put("/api/v1/engagements")]
    page = robot.get("/docs").text
    for answer in answers:
        assert f'id="{answer.json()["type"].partition("#")[2]}"' in page, answer.text
