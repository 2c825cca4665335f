"""User text is printed as it was written, or as its code point; nothing invisible, nothing that breaks the page."""

from __future__ import annotations

import pytest

from app.reports.glyphs import has_glyph, printable


def test_the_font_has_the_characters_of_both_languages_and_of_rare_surnames() -> None:
    assert all(has_glyph(c) for c in "首字延迟，。：；（）《》、≥≤±×·—…±∞∈𠮷喆Aa1%")
    assert not has_glyph("\U0001f680")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("到货 \U0001f680", "到货 [U+1F680]"),
        ("a\u202eb", "a[U+202E]b"),
        ("zero\u200bwidth", "zero[U+200B]width"),
        ("nul\x00", "nul[U+0000]"),
        ("two\nlines\tx", "two lines x"),
        ("李伟 25.96 %", "李伟 25.96\u00a0%"),
        ("#import $x$ *b* <script>", "#import $x$ *b* <script>"),
    ],
)
def test_text_becomes_printable_without_losing_what_it_says(raw: str, shown: str) -> None:
    assert printable(raw) == shown


def test_a_very_long_text_is_cut_with_a_sentence_and_its_length() -> None:
    shown = printable("a" * 10_000, " ({n} characters)")
    assert shown.endswith("(10000 characters)")
    assert len(shown.replace("\u200b", "")) < 700


def test_a_long_word_can_be_broken() -> None:
    assert "\u200b" in printable("x" * 60)
    assert printable("evidence/run-1/gpu01/records.jsonl").replace("\u200b", "") == "evidence/run-1/gpu01/records.jsonl"
