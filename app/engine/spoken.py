"""Sentences that a playbook or a kit on a target says in both languages: one JSON object {"en": ..., "zh-CN": ...} where a message is expected.

Pure. The target knows no reader's language, so it sends both, and every face of the service shows its reader's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gates.text import Text

MOST = 600  # characters of a sentence that are kept


def spoken(text: Any) -> Text | None:
    """Return the sentence in both languages, or None where a text is something else."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or set(value) != {"en", "zh-CN"} or not all(isinstance(half, str) and half.strip() for half in value.values()):
        return None
    return Text(value["en"][:MOST], value["zh-CN"][:MOST])


def both_of(failure: Mapping[str, Any]) -> dict[str, Any]:
    """Return {why_both: {en, zh-CN}} of a failure that was said in both languages, for a report beside the one text `why`; nothing else."""
    return {"why_both": failure["both"]} if isinstance(failure.get("both"), Mapping) else {}


def why_of(row: Mapping[str, Any]) -> Text | str:
    """Return why something of a report is not done, for a reader of either language where both halves are there."""
    both = row.get("why_both")
    return Text.parse(dict(both)) if isinstance(both, Mapping) else str(row.get("why") or "")


def said(failure: Mapping[str, Any]) -> Text:
    """Return what a failed task said, as captured: in both languages where it came so, else the one text for both readers."""
    message = str(failure.get("message") or "")
    both = failure.get("both")
    return Text.parse(dict(both)) if isinstance(both, Mapping) else Text(message, message)
