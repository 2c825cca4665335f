"""Words, numbers and errors in two languages; times; permissions of roles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from app.accounts.roles import GRANTS, Permission, Role, granted
from app.kit import i18n
from app.kit.clock import stamp
from app.kit.errors import BadInput, FieldProblem, Refused
from gates.text import Text

SENTENCE = "There is no attempt {id}."


@pytest.mark.parametrize(
    ("header", "preferred", "locale"),
    [
        ("en-US,en;q=0.9,zh;q=0.8", None, "en"),
        ("zh-CN,zh;q=0.9", None, "zh_CN"),
        ("zh-TW;q=0.7,en;q=0.8", None, "en"),
        ("zh-Hans-CN", None, "zh_CN"),
        ("fr,de", None, "zh_CN"),
        ("en;q=0,zh", None, "zh_CN"),
        ("en;q=bad,zh;q=0.1", None, "zh_CN"),
        ("", None, "zh_CN"),
        (None, None, "zh_CN"),
        ("zh-CN", "en", "en"),
        ("en", "zh-CN", "zh_CN"),
    ],
)
def test_the_persons_choice_comes_first_then_the_header_by_weight_then_the_default(header: str | None, preferred: str | None, locale: str) -> None:
    assert i18n.negotiate(header, preferred) == locale


def test_a_sentence_is_said_in_either_language_and_an_unknown_one_in_english() -> None:
    assert i18n.translate(SENTENCE, "zh-CN", id=7) == "没有尝试 7。"
    assert i18n.translate(SENTENCE, "en", id=7) == "There is no attempt 7."
    assert i18n.translate("Nobody translated {this}.", "zh_CN", this="x") == "Nobody translated x."


def test_what_a_person_wrote_is_never_taken_for_a_placeholder() -> None:
    assert i18n.translate(SENTENCE, "en", id="{id!r} {0}") == "There is no attempt {id!r} {0}."
    assert i18n.translate("{ not a placeholder", "en") == "{ not a placeholder"


def test_an_error_puts_texts_in_language_by_language_and_names_its_fields() -> None:
    error = BadInput("code", N_FORM, [FieldProblem("/a/b", N_MISSING, {"title": Text("Name", "姓名")})], count=1)
    assert error.errors[0].text("zh_CN") == "缺少姓名。"
    assert str(error) == "The form cannot be accepted. Fields that need attention: 1.\n  /a/b: Name is missing."
    assert (error.status, Refused("code", Text("no", "否")).pair()) == (422, Text("no", "否"))


N_FORM = "The form cannot be accepted. Fields that need attention: {count}."
N_MISSING = "{title} is missing."


def test_sizes_keep_their_units() -> None:
    assert [i18n.format_bytes(n, "en") for n in (0, 1023, 1024, 1536 * 1024)] == ["0 B", "1,023 B", "1 KiB", "1.5 MiB"]


def test_a_time_is_written_in_utc_whatever_zone_it_came_in() -> None:
    at = datetime(2026, 11, 29, 20, 0, 0, 123456, tzinfo=timezone(timedelta(hours=8)))
    assert stamp(at) == "2026-11-29T12:00:00.123Z"
    assert stamp(at) == stamp(at.astimezone(UTC))
    assert stamp(None) is None


def test_only_an_approver_approves_and_an_unknown_role_grants_nothing() -> None:
    assert [role for role in Role if Permission.APPROVE in GRANTS[role]] == [Role.APPROVER]
    assert granted(frozenset({"boss", "root"})) == frozenset()
    assert granted(frozenset({"viewer", "approver"})) == GRANTS[Role.VIEWER] | GRANTS[Role.APPROVER]
