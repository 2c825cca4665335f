"""Events of Ansible as lines of text. Escape sequences and control characters are dropped; what is left is shown as text only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_RULER = re.compile(r" \*{4,}$")  # Ansible fills a heading up to the width of a terminal, which a page has not
_KINDS = (
    ("failed", "failed"),
    ("unreachable", "failed"),
    ("error", "failed"),
    ("skipped", "skipped"),
    ("_start", "head"),
    ("playbook_on_stats", "head"),
)
_FIRST_WORDS = (("changed:", "changed"), ("ok:", "ok"), ("skipping:", "skipped"), ("fatal:", "failed"), ("failed:", "failed"))
LONGEST = 4000  # characters of one line on a page; the evidence holds all


def clean(text: str) -> str:
    """Return text without escape sequences and control characters; tabs stay."""
    return _CONTROL.sub("", _ANSI.sub("", text))


def lines_of(event: dict[str, Any]) -> list[dict[str, str]]:
    """Return the lines of one event: {text, kind}, kind being "", head, ok, changed, skipped or failed."""
    stdout = event["stdout"].replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not stdout:
        return []
    general = next((kind for part, kind in _KINDS if part in event["kind"]), "")
    return [{"text": _shorten(text), "kind": _kind(text, general)} for text in map(clean, stdout.split("\n"))]


def all_lines(events: Iterable[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the lines of several events, in order."""
    return [line for event in events for line in lines_of(event)]


def _kind(text: str, general: str) -> str:
    return next((kind for word, kind in _FIRST_WORDS if text.startswith(word)), general)


def _shorten(text: str) -> str:
    text = _RULER.sub(" ***", text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
