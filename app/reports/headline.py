"""The big numbers of page 1: of each main quantity the tier that is nearest to its limit, so that no mean hides one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from app.reports import format as f
from app.reports.words import Words

# The main quantities of each gate, as beginnings of check ids. A gate or a judge with other ids simply has no big number.
MAIN = {
    "G2": ("g2.ttft", "g2.throughput"),
    "G3": ("g3.ttft_p50_drop", "g3.throughput_gain"),
    "G4": ("g4.error_rate", "g4.drift"),
}

_WORST = ("fail", "invalid", "inconclusive", "conditional")


def headlines(document: dict[str, Any], rows: list[dict[str, Any]], gate: str, words: Words) -> list[dict[str, Any]]:
    """Return up to two panels: {title, value, limit, interval, verdict, note, check}; `check` feeds the bar that shows it."""
    checks = {check["id"]: check for check in document.get("checks") or []}
    panels = []
    for start in MAIN.get(gate, ()):
        group = [row for row in rows if row["id"].startswith(start) and row["severity"] == "blocking" and row["numeric"]]
        if group:
            worst = min(group, key=lambda row: _distance(checks[row["id"]]))
            panels.append(_panel(worst, group, checks[worst["id"]], words))
    return panels or [_count(rows, words)]


def key_checks(rows: list[dict[str, Any]], gate: str, most: int = 8) -> list[dict[str, Any]]:
    """Return the checks of page 1: blocking ones that do not pass come first, the worst on top, then the main quantities at every tier."""
    missed = [row for row in rows if row["severity"] == "blocking" and row["verdict"] != "pass"]
    missed.sort(key=lambda row: _WORST.index(row["verdict"]) if row["verdict"] in _WORST else 0)
    main = [row for row in rows if row not in missed and row["id"].startswith(MAIN.get(gate, ("-",)))]
    return (missed + main)[:most]


def advisory_of(rows: list[dict[str, Any]], words: Words) -> dict[str, Any]:
    """Return what page 1 and the attempt page say of the advisory checks that did not hold: {sentence, rows: the checks, failed ones first}.

    It says how many there are, how many did not hold or could not be judged, and that they decide nothing; it is empty where all held.
    """
    advisory = [row for row in rows if row["severity"] == "advisory"]
    missed = [row for row in advisory if row["verdict"] == "fail"]
    open_ones = [row for row in advisory if row["verdict"] in ("inconclusive", "invalid")]
    if not missed and not open_ones:
        return {"sentence": "", "rows": []}
    kind = "advisory.both" if missed and open_ones else "advisory.missed" if missed else "advisory.open"
    return {"sentence": words(kind, n=len(advisory), k=len(missed), u=len(open_ones)), "rows": [*missed, *open_ones]}


def _distance(check: dict[str, Any]) -> Decimal:
    """Return how far inside its limit a check lies; a check without a margin is taken as the nearest."""
    margin = f.number(check.get("margin"))
    return margin if margin is not None else Decimal("-Infinity")


def _panel(row: dict[str, Any], group: list[dict[str, Any]], check: dict[str, Any], words: Words) -> dict[str, Any]:
    note = ""
    if row["tier"] is not None:
        note = words("headlines.weakest" if len(group) > 1 else "headlines.tier", tier=row["tier"])
    return {
        "title": row["title"],
        "value": row["value"],
        "limit": words("headlines.limit", limit=row["limit"]) if row["limit"] else "",
        "interval": "" if row["interval_is_note"] else row["interval"],
        "verdict": row["verdict"],
        "verdict_text": row["verdict_text"],
        "note": note,
        "check": {key: check.get(key) for key in ("value", "limit", "interval", "unit", "quantity")},
    }


def _count(rows: list[dict[str, Any]], words: Words) -> dict[str, Any]:
    """Return the panel of a gate without a main number: how many blocking checks meet their limit."""
    blocking = [row for row in rows if row["severity"] == "blocking"]
    good = [row for row in blocking if row["verdict"] == "pass"]
    return {
        "title": words("headlines.checks"),
        "value": words("headlines.of", n=len(good), m=len(blocking)),
        "limit": "",
        "interval": "",
        "verdict": "pass" if blocking and len(good) == len(blocking) else "none",
        "verdict_text": "",
        "note": "",
        "check": None,
    }
