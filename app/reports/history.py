"""Every attempt and rehearsal of a gate with its end: nothing is left out, the best is not picked."""

from __future__ import annotations

from typing import Any

from app.reports import format as f
from app.reports.extension import sentence
from app.reports.facts import Facts
from app.reports.words import Words


def attempt_rows(facts: Facts, words: Words) -> list[dict[str, Any]]:
    """Return all attempts and rehearsals of the gate, oldest first, this one marked."""
    return [_row(attempt, facts, words) for attempt in facts.attempts]


def counts(facts: Facts, words: Words) -> str:
    """Return the sentence of page 1: how many attempts, how many counted, how many rehearsals, how many without a judgement."""
    formal = [a for a in facts.attempts if not a.get("rehearsal")]
    most = ((facts.plan.get("policy") or {}).get("attempts") or {}).get(facts.gate, "")
    return words(
        "counts",
        formal=len(formal),
        most=most,
        counted=sum(1 for a in formal if a.get("counted_at")),
        rehearsals=len(facts.attempts) - len(formal),
        unfinished=sum(1 for a in formal if a.get("finished_at") and not a.get("verdict")),
    )


def _row(attempt: dict[str, Any], facts: Facts, words: Words) -> dict[str, Any]:
    kind = "rehearsal" if attempt.get("rehearsal") else "formal"
    verdict = None if attempt.get("rehearsal") else attempt.get("verdict")
    because = words.numbers(words.of("because", b) for b in attempt.get("because") or []) if verdict == "conditional" else ""
    reason = words.text(attempt.get("problem")) or words.text(attempt.get("cancel_reason")) or str(attempt.get("rig_cause") or "")
    return {
        "id": attempt["id"],
        "this": attempt["id"] == facts.attempt["id"],
        "kind": kind,
        "kind_text": words.of("kinds", kind),
        "number": attempt["number"],
        "started": f.moment(attempt.get("started_at") or attempt.get("created_at")),
        "ended": f.moment(attempt.get("finished_at")),
        "counted": f.moment(attempt.get("counted_at")) if attempt.get("counted_at") else "",
        "status": attempt.get("status"),
        "status_text": words.of("run_statuses", attempt.get("status")),
        "verdict": verdict or "none",
        "verdict_text": words.of("verdicts", verdict or "none"),
        "reason": " ".join(part for part in (sentence(attempt, words), because or reason) if part),
        "plan_hash": str(attempt.get("plan_hash") or ""),
    }
