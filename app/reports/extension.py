"""What a report says of an extension: when, why, by whom and how many run pairs, and what its judgement changed."""

from __future__ import annotations

from typing import Any

from app.reports import format as f
from app.reports.facts import Facts
from app.reports.words import Words


def extension_of(facts: Facts, words: Words) -> dict[str, Any]:
    """Return the extension of this attempt in words: {sentence, why, said, from_verdict, judged}; empty when there was none."""
    told = facts.attempt.get("extension")
    if not told:
        return {}
    return {
        "sentence": sentence(facts.attempt, words),
        "why": words.text(told.get("why")),
        "said": str(told.get("said") or ""),
        "from_verdict": str(told["from_verdict"]),
        "judged": str(told.get("judged") or ""),
    }


def sentence(attempt: dict[str, Any], words: Words) -> str:
    """Return the sentence about the extension of any attempt; empty when there was none."""
    told = attempt.get("extension")
    if not told:
        return ""
    end = "judged" if told.get("judged") else "given_up" if attempt.get("status") == "canceled" else "open"
    party = words.of("parties", told["party"])
    return words(f"extension.{end}", pairs=told["pairs"], at=f.moment(told["at"]), by=told["by"], party=party)


def is_open(attempt: dict[str, Any]) -> bool:
    """Tell whether an extension goes on, so that no verdict holds."""
    told = attempt.get("extension")
    return told is not None and not told.get("judged") and attempt.get("status") != "canceled"


def changed_checks(verdict: dict[str, Any], words: Words) -> list[dict[str, str]]:
    """Return the checks whose verdict a judgement changed against the one before it: {check, title, before, after, after_word}."""
    return [
        {
            "check": str(row["check"]),
            "title": words.text(row.get("title")) or str(row["check"]),
            "before": words.of("verdicts", row["from"]) if row.get("from") else f.MISSING,
            "after": words.of("verdicts", row["to"]) if row.get("to") else f.MISSING,
            "after_word": str(row.get("to") or "none"),
        }
        for row in verdict.get("changed") or []
        if row.get("from") != row.get("to")
    ]
