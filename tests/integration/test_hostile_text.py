"""No character that is no text brings the service to an internal error, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest

from tests.integration.hostile import broken
from tests.integration.test_migrations_postgres import cast_on_postgres, server
from tests.integration.web_client import Browser, Robot
from tests.people import Cast

__all__ = ["cast_on_postgres", "server"]


def test_no_address_and_no_field_with_a_character_that_is_no_text_is_an_internal_error(cast: Cast) -> None:
    assert broken(cast) == []


@pytest.mark.postgres
def test_nor_on_postgresql_which_takes_no_nul_at_all(cast_on_postgres: Cast) -> None:
    assert broken(cast_on_postgres) == []


def test_an_address_with_a_control_character_is_refused_with_a_sentence(cast: Cast) -> None:
    answer = Robot(cast.li_wei.user_id, "zh-CN").get("/engagements/a%00b")
    assert (answer.status_code, answer.json()["code"], "非文字字符" in answer.json()["detail"]) == (400, "no_text", True)
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert Browser("li.wei").get("/engagements/%0a").status_code == 400
