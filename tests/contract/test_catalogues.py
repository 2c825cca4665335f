"""Every sentence that the program says stands in the Chinese catalogue, whole and with its placeholders; and nothing else stands there."""

from __future__ import annotations

import pytest

from app.kit.catalogue import placeholders, problems, python_msgids, template_msgids
from app.kit.i18n import LOCALES


@pytest.mark.parametrize("locale", [locale for locale in LOCALES if locale != "en"])
def test_the_catalogue_holds_exactly_what_the_program_says(locale: str) -> None:
    found = problems(locale)
    assert not found, f"{len(found)} problems (python -m app.kit.catalogue lists them):\n" + "\n".join(found)


def test_it_finds_sentences_however_they_are_written() -> None:
    source = """
x = N_("plain"); y = kit.translate("of a module", locale); z = t2("not marked")
raise E("code", N_("in two "
    "pieces"), [F("/a", N_("nested"))])
translate("one" if x else "other", locale)  # translate("in a comment")
pair(f"{x} is no msgid"); pair(x)
"""
    assert [msgid for msgid, _ in sorted(python_msgids(source), key=lambda found: found[1])] == [
        "plain",
        "of a module",
        "in two pieces",
        "nested",
        "one",
        "other",
    ]


def test_it_finds_the_sentences_of_templates() -> None:
    source = """{# t("in a comment") #}{{ t("plain", n=1) }}{% if t("in a test") %}{{ t("one" if a else "other") }}{% endif %}{{ u("not marked") }}"""
    assert [msgid for msgid, _ in template_msgids(source)] == ["plain", "in a test", "one", "other"]


@pytest.mark.parametrize(("one", "other"), [("{a} {b}", "{a}"), ("%(n)s", "%(m)s"), ("{a", "{a}"), ("{a}", "{}")])
def test_a_lost_or_broken_placeholder_is_seen(one: str, other: str) -> None:
    assert placeholders(one) != placeholders(other)


def test_the_order_of_placeholders_is_free() -> None:
    assert placeholders("{a} of {b}: %(n)s") == placeholders("%(n)s：{b} 的 {a}")
