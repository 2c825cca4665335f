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
    said = words(
        "counts",
        formal=len(formal),
        most=most,
        counted=sum(1 for a in formal if _counts(a)),
        rehearsals=len(facts.attempts) - len(formal),
        unfinished=sum(1 for a in formal if a.get("finished_at") and not a.get("verdict")),
    )
    excused = sum(1 for a in formal if a.get("excused"))
    return said + words("counts_excused", n=excused) if excused else said


def _counts(attempt: dict[str, Any]) -> bool:
    """Tell whether an attempt counts: from its first measured request or judgement, unless both parties approved a rig cause (DESIGN 4.11)."""
    return bool(attempt.get("counted_at")) and not attempt.get("excused")


def _row(attempt: dict[str, Any], facts: Facts, words: Words) -> dict[str, Any]:
    kind = "rehearsal" if attempt.get("rehearsal") else "formal"
    verdict = None if attempt.get("rehearsal") else attempt.get("verdict")
    because = words.numbers(words.of("because", b) for b in attempt.get("because") or []) if verdict == "conditional" else ""
    cause = str(attempt.get("rig_cause") or "")
    excused = words("excused", cause=cause) if attempt.get("excused") else ""
    reason = words.text(attempt.get("problem")) or words.text(attempt.get("cancel_reason")) or ("" if excused else cause)
    return {
        "id": attempt["id"],
        "this": attempt["id"] == facts.attempt["id"],
        "kind": kind,
        "kind_text": words.of("kinds", kind),
        "number": attempt["number"],
        "started": f.moment(attempt.get("started_at") or attempt.get("created_at")),
        "ended": f.moment(attempt.get("finished_at")),
        "counted": f.moment(attempt.get("counted_at")) if _counts(attempt) else "",
        "status": attempt.get("status"),
        "status_text": words.of("run_statuses", attempt.get("status")),
        "verdict": verdict or "none",
        "verdict_text": words.of("verdicts", verdict or "none"),
        "reason": " ".join(part for part in (sentence(attempt, words), because or reason, excused) if part),
        "plan_hash": str(attempt.get("plan_hash") or ""),
    }
