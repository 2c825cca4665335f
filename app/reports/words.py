"""The words of the reports: one catalogue per language beside the templates, read by Python and by Typst alike."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from app.reports.format import zh
from app.settings import settings


@lru_cache(maxsize=4)
def catalogue(tag: str) -> dict[str, Any]:
    """Return the catalogue of `zh` or `en`."""
    path = settings().template_dir / "report" / f"words.{tag}.json"
    words: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return words


class Words:
    """Looks words up by dotted path in one language."""

    def __init__(self, language: str) -> None:
        self.language = "zh-CN" if zh(language) else "en"
        self._words = catalogue("zh" if zh(language) else "en")

    def __call__(self, path: str, **values: Any) -> str:
        """Return a sentence with its placeholders filled. An unknown path is an error of ours and raises KeyError."""
        found: Any = self._words
        for part in path.split("."):
            found = found[part]
        return str(found).format(**values) if values else str(found)

    def of(self, table: str, key: Any, default: str | None = None) -> str:
        """Return the word for a key of a table (its keys may hold dots); an unknown key is printed as it is, never hidden."""
        found = self._words[table].get(str(key), str(key) if default is None else default)
        return str(found)

    def place(self, table: str, key: str) -> int:
        """Return the place of a key in a table of the catalogue; unknown keys come last."""
        keys = list(self._words[table])
        return keys.index(key) if key in keys else len(keys)

    def text(self, pair: Any) -> str:
        """Return the half of an {"en", "zh-CN"} pair; plain text as it is; nothing as an empty text."""
        if isinstance(pair, dict):
            return str(pair.get(self.language) or pair.get("en") or pair.get("zh-CN") or "")
        return "" if pair is None else str(pair)

    def numbers(self, values: Any) -> str:
        """Join a list of words or numbers as the language does."""
        return ("、" if self.language == "zh-CN" else ", ").join(str(v) for v in values)
