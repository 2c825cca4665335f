"""The page of words: every word that the design decides, in both languages, for readers with and without an account."""

from __future__ import annotations

import html
import re

import pytest

from app.kit.glossary import ENTRIES
from app.settings import ROOT
from tests.integration.web_client import Browser
from tests.people import Cast


def decided() -> list[tuple[str, str]]:
    """Return the words of DESIGN section 3, English and Chinese."""
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = design[design.index("## 3. Words") : design.index("## 4.")]
    return [(en, zh) for en, zh, _ in re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.M) if en not in ("here", "---")]


def test_every_word_of_the_design_is_explained_in_both_languages() -> None:
    known = {(entry.name.en, entry.name.zh) for entry in ENTRIES}
    assert len(decided()) >= 13
    assert [pair for pair in decided() if pair not in known] == []
    assert all(re.search(r"[\u4e00-\u9fff]", entry.means.zh) and not re.search(r"[\u4e00-\u9fff]", entry.means.en) for entry in ENTRIES)
    assert len({entry.id for entry in ENTRIES}) == len(ENTRIES)


@pytest.mark.parametrize("login", ["", "wang.fang"])
@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_the_page_is_open_and_linked_from_the_foot_of_every_page(cast: Cast, login: str, language: str) -> None:
    browser = Browser(login, language)
    page = browser.get("/words")
    assert page.status_code == 200
    assert f'<html lang="{language}"' in page.text
    told = html.unescape(page.text)
    for entry in ENTRIES:
        assert f'id="{entry.id}"' in told
        assert entry.means.in_language(language) in told.replace("\u00a0", " ")
        assert entry.name.en in told
        assert entry.name.zh in told
    for path in ("/sign-in",) if not login else ("/", "/sign-off", "/account"):
        assert 'href="/words"' in browser.get(path).text
