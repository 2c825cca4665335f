"""The codes of all problems, as tools/problems_page.py finds them declared: what the `type` of a problem leads to."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("problem_codes.json")
_PLACE = re.compile(r"\{[^{}]*\}")


@lru_cache(maxsize=1)
def codes() -> dict[str, dict[str, Any]]:
    """Return each code with its HTTP statuses and its sentences in both languages; a code without statuses comes with any."""
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def unfilled(sentence: str) -> str:
    """Return a sentence with a mark where it names something of the case at hand."""
    return _PLACE.sub("…", sentence)


def type_of(code: str) -> str:
    """Return the `type` of a problem: its entry on the API's page; `about:blank` (RFC 9457) for a code that has none."""
    return f"/api/v1/docs#problem-{code}" if code in codes() else "about:blank"
