"""Deviations, waivers and punch items in a report: those of its gate, and what earlier gates left open."""

from __future__ import annotations

from typing import Any

from app.reports import format as f
from app.reports.words import Words


def belongs(entry: dict[str, Any], gate: str) -> bool:
    """Tell whether an entry is printed in a gate's report: its own, open and closed, and the open ones that earlier gates hand on."""
    return bool(entry["gate"] == gate or (entry["gate"] < gate and entry["state"] != "closed"))


def register_rows(entries: list[dict[str, Any]], words: Words, *, punch: bool) -> list[dict[str, Any]]:
    """Return the rows of one of the two tables: punch items, or deviations and waivers."""
    return [_row(entry, words) for entry in entries if (entry["kind"] == "punch") is punch]


def open_sentence(entries: list[dict[str, Any]], words: Words) -> str:
    """Return the sentence of page 1: how much is open, counted apart; empty when nothing was ever recorded."""
    if not entries:
        return ""
    left = [e for e in entries if e["state"] != "closed"]
    counted = {kind: sum(1 for e in left if e["kind"] == kind) for kind in ("deviation", "waiver", "punch")}
    return words("register_open", **counted, closed=len(entries) - len(left))


def _row(entry: dict[str, Any], words: Words) -> dict[str, Any]:
    said = [
        words(
            "register_decided",
            who=a["person"],
            party=words.of("parties", a["party"]),
            decision=words.of("decisions", a["decision"]),
            at=f.moment(a["at"]),
        )
        for a in entry["approvals"]
    ]
    if entry["state"] == "closed":
        party = words.of("parties", entry["closed_party"]) if entry["closed_party"] else ""
        said.append(words("register_closed", who=entry["closed_by"], party=party, at=f.moment(entry["closed_at"]), note=entry["closing"]))
    return {
        "id": entry["label"],
        "kind": entry["kind"],
        "kind_text": words.of("register_kinds", entry["kind"]),
        "gate": entry["gate"],
        "severity_text": words.of("register_severities", entry["severity"]),
        "text": entry["what"],
        "reason": entry["reason"],
        "owner": entry["owner"],
        "owner_party_text": words.of("parties", entry["owner_party"]),
        "due": entry["due"],
        "state": entry["state"],
        "state_text": words.of("register_states", entry["state"]),
        "said": said,
        "hash": entry["hash"],
    }
