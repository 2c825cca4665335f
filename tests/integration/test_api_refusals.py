"""What the API refuses, it refuses in the reader's language: which field, what was expected there, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.api.fields import OTHER
from app.kit.db import new_id
from app.kit.i18n import translate
from tests.integration.web_client import Browser, Robot, demo_engagement
from tests.people import Cast

WRONG: tuple[Any, ...] = ("", None, True, 1.5, 10**30, [], {}, "x" * 40_000, [1], {"a": 1})
RAW = re.compile(r"(?:\b[a-z]{3,}\b[ ,.]+){3,}")  # four English words in a row


def calls(robot: Robot) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and the fields of the body of every operation that takes a JSON body of fields."""
    spec = robot.get("/openapi.json").json()
    for path, operations in spec["paths"].items():
        for method, operation in operations.items():
            schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            named = [part["$ref"] for part in (schema, *schema.get("anyOf", [])) if "$ref" in part]
            if named:
                yield method, path, spec["components"]["schemas"][named[0].rpartition("/")[2]]["properties"]


def address(path: str, engagement: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: {"engagement_id": engagement, "gate": "G1"}.get(found[1], new_id()), path)


def test_every_wrong_value_of_every_field_is_told_with_what_was_expected(cast: Cast) -> None:
    robot, engagement, seen = Robot(cast.li_wei.user_id, "zh-CN"), demo_engagement(cast), set()
    fallback = re.compile(re.escape(translate(OTHER, "zh_CN")).replace(r"\{kind\}", ".*"))
    for _method, path, fields in calls(robot):
        assert fields, path
        for wrong in WRONG:
            for body in (wrong, dict.fromkeys(fields, wrong), {"no_such_field": wrong}):
                answer = robot.post(address(path, engagement), json=body, If_Match="*", Idempotency_Key=new_id())
                if answer.status_code != 422 or answer.json()["code"] != "bad_request":
                    continue
                told = answer.json()
                for error in told["errors"]:
                    assert not fallback.fullmatch(error["message"]), (path, body, error)
                    assert not RAW.search(error["message"]), (path, error)
                    seen.add(error["code"])
                assert told["errors"][0]["message"] in told["detail"]  # enough by itself, for whoever reads nothing else
                assert answer.headers["content-language"] == "zh-CN"
    assert seen >= {"missing", "literal_error", "string_type", "string_too_short", "string_too_long", "too_short", "dict_type", "extra_forbidden"}


@pytest.mark.parametrize(("language", "words"), [("en", "Choose one of these values: deviation, waiver, punch."), ("zh-CN", "请从下列取值中选择")])
def test_a_field_of_fixed_values_that_is_sent_empty_is_told_what_there_is_to_choose(cast: Cast, language: str, words: str) -> None:
    robot, engagement = Robot(cast.li_wei.user_id, language), demo_engagement(cast)
    entry = {"kind": "", "gate": "G1", "what": "a thing", "reason": "a reason", "owner_party": "vendor", "owner": "Li", "due": "2099-12-31"}
    answer = robot.post(f"/engagements/{engagement}/deviations", json=entry)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/kind"
    assert words in answer.json()["errors"][0]["message"]
    assert "deviation, waiver, punch" in answer.json()["errors"][0]["message"]


def test_a_list_of_a_page_that_is_sent_empty_offers_its_words_in_the_readers_language(cast: Cast) -> None:
    engagement = demo_engagement(cast)
    for path, words in ((f"/engagements/{engagement}/register", "遗留项"), (f"/engagements/{engagement}/wipes", "块擦除")):
        page = Browser("li.wei", "zh-CN").send(path).text
        told = " ".join(re.findall(r'<span class="field-error">.*?</span></span>', page, re.S))
        assert words in told, path
        assert "请从下列取值中选择" in told, path
    for language, words in (("zh-CN", "未指明门禁"), ("en", "No gate was named")):
        assert words in Browser("li.wei", language).send(f"/engagements/{engagement}/rehearsals").text


@pytest.mark.parametrize("given", ["image/png", "application/x-www-form-urlencoded", "text/plain", ""])
def test_a_body_of_another_kind_is_415_and_told_which_kinds_are_taken_by_every_call(cast: Cast, given: str) -> None:
    engagement = demo_engagement(cast)
    for language, words in (("en", "say so in the header Content-Type"), ("zh-CN", "请求头 Content-Type")):
        robot = Robot(cast.li_wei.user_id, language)
        bodies = [(path, "application/json") for _, path, _ in calls(robot)]
        bodies += [("/engagements", "application/yaml")] if given != "text/plain" else []
        for path, taken in bodies:
            answer = robot.post(address(path, engagement), content=b"a=1", If_Match="*", Content_Type=given, Idempotency_Key=new_id())
            assert answer.status_code == 415, (path, answer.text)
            assert answer.json()["code"] == "unsupported_media_type"
            assert words in answer.json()["detail"]
            assert taken in answer.json()["detail"]
            assert given in answer.json()["detail"]
            assert taken in answer.headers["accept-post"]
