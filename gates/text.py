"""Sentences in both languages, side by side, so that a verdict can be read in either without a service.

The service's own pages use gettext catalogues; a verdict must carry its words with it, because it is recomputed
offline and printed in two editions of one report. A test checks that both halves name the same placeholders.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and patterns by their category, and nothing on paper
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})


@dataclass(frozen=True)
class Text:
    """One sentence or title in English and Simplified Chinese."""

    en: str
    zh: str

    def fill(self, **values: Any) -> Text:
        """Return the sentence with its `{placeholders}` filled in both languages.

        A value that is itself a `Text` is put in language by language.
        """
        en = {k: v.en if isinstance(v, Text) else v for k, v in values.items()}
        zh = {k: v.zh if isinstance(v, Text) else v for k, v in values.items()}
        return Text(self.en.format(**en), self.zh.format(**zh))

    def json(self) -> dict[str, str]:
        """Return the form that stands in verdict.json."""
        return {"en": self.en, "zh-CN": self.zh}

    @classmethod
    def parse(cls, value: dict[str, str]) -> Text:
        """Read the form that `json` wrote."""
        return cls(en=value["en"], zh=value["zh-CN"])

    def in_language(self, language: str) -> str:
        """Return the half for a locale name: anything that starts with zh is Chinese."""
        return self.zh if language.startswith("zh") else self.en


def joined(texts: Iterable[Text]) -> Text:
    """Return several texts as one, parted by commas in English and by the enumeration comma in Chinese."""
    rows = list(texts)
    return Text(", ".join(row.en for row in rows), "、".join(row.zh for row in rows))


def clauses(texts: Iterable[Text]) -> Text:
    """Return several sentences as clauses of one, parted by semicolons, without its last stop."""
    rows = list(texts)
    en = "; ".join(row.en.rstrip().removesuffix(".") for row in rows)
    return Text(en, "；".join(row.zh.rstrip().removesuffix("。") for row in rows))


def seen(text: str) -> str:
    """Return what of a text can be seen: without spaces, control and format characters (a zero-width space), and letters that are blank."""
    return "".join(c for c in text if unicodedata.category(c) not in _UNSEEN and c not in _BLANK)


def amid(term: str) -> str:
    """Return a term as it stands amid Chinese words: with a space at an end that is a Latin letter or a digit, with none at a Chinese one."""
    before, after = (" " if end.isascii() and end.isalnum() else "" for end in (term[:1], term[-1:]))
    return f"{before}{term}{after}"
