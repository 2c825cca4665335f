"""Times of a run that fit each other again after an edit of its requests."""

from __future__ import annotations

from typing import Any

from tests.bundles.evidence import Evidence

_OF_A_REQUEST = ("scheduled_ns", "sent_ns", "first_byte_ns", "first_text_ns", "end_ns", "mono_ns")


def in_time(evidence: Evidence, step: str) -> Evidence:
    """Let each phase of a run last until its last request ended, its counters stand around them, and what follows begin so much later."""
    records, counters = evidence.rows(step, "records.jsonl"), evidence.rows(step, "counters.jsonl")
    phases, late = evidence.rows(step, "phases.jsonl"), 0
    for phase in phases:
        phase["started_ns"] += late
        mine = [r for r in records if r["phase"] == phase["phase"] and phase["tier"] in (None, r["tier"])]
        for row in mine:
            _later(row, late)
        last = max((r["end_ns"] for r in mine), default=0) + 10**6
        ended = max(phase["ended_ns"] + late, last)
        late += ended - (phase["ended_ns"] + late)
        phase["ended_ns"] = ended
        for row in (c for c in counters if (c["phase"], c["tier"]) == (phase["phase"], phase["tier"])):
            row["mono_ns"] = phase["started_ns"] if row["when"] == "before" else ended
    for name, rows in (("records", records), ("counters", counters), ("phases", phases)):
        evidence.lines(step, f"{name}.jsonl", lambda _, rows=rows: rows)
    return evidence.json(step, "exit.json", lambda d: d.update(ended_ns=d["ended_ns"] + late))


def _later(row: dict[str, Any], late: int) -> None:
    for key in _OF_A_REQUEST:
        if row.get(key) is not None:
            row[key] += late
    if row.get("server"):
        row["server"] = {key: value + late for key, value in row["server"].items()}
