"""Checks and claims of a verdict as rows for people: every number formatted here, once, for all faces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.reports import format as f
from app.reports.charts.svg import arm_title as _arm_title
from app.reports.words import Words
from gates.declarations import is_share

_SIGNED = re.compile(r"gain")
_LIMIT_WORDS = {"rated": ("the rating", "额定值"), "exact": ("exact", "完全相等")}
_TIMES = {"ns": 1, "us": 1_000, "ms": 1_000_000}
_STATUS_ORDER = ("breached", "unknown", "not_tested", "holds", "not_applicable")


def value_text(value: Any, unit: str, quantity: str, limits: tuple[Any, ...] = (), language: str = "en") -> str:
    """Format the value of a check or claim by its unit; text is printed as it is, nothing as "n/a" or its Chinese word."""
    got = f.number(value)
    if got is None:
        return str(value) if value not in (None, "") else "无" if f.zh(language) else f.MISSING
    bounds = tuple(limit for limit in map(f.number, limits) if limit is not None)
    if is_share(quantity, unit):
        return f.percent(got, limits=bounds, sign=bool(_SIGNED.search(quantity)))
    if unit in _TIMES:
        return f.ms_of_ns(got * _TIMES[unit], limits=[b * _TIMES[unit] for b in bounds])
    if unit in ("B", "bytes", "byte"):
        return f.size(got, limits=bounds)
    if unit == "bit/s":
        return f.bit_rate(got)
    if unit in ("tok/s", "token/s", "tokens/s"):
        return f.tok_s(got, limits=bounds)
    if unit == "s":
        text = f.duration(got, language)
        hidden = any(got != bound and text == f.duration(bound, language) for bound in bounds)
        return f"{f.grouped(got, digits=1, limits=bounds)} s" if hidden else text
    if quantity.endswith("speedup"):
        return f"{f.exact(got)} {'倍' if f.zh(language) else 'x'}"
    digits = 0 if got == got.to_integral_value() else 2 if abs(got) >= 10 else 4
    text = f.grouped(got, digits=digits, limits=bounds)
    return f"{text} {_unit(unit, language)}".strip()


def limit_text(limit: dict[str, Any] | None, unit: str, quantity: str, language: str = "en") -> str:
    """Format a limit with exactly the digits it was agreed with: ">= 25 %", "+29 % .. +40 %", "= EDA57F1Q"."""
    if not limit or limit.get("op") in (None, "none"):
        return ""
    low, high, op = limit.get("low"), limit.get("high"), str(limit["op"])
    if op == "set" and f.number(low) is not None:
        op = "=="

    def one(value: Any) -> str:
        if f.number(value) is None:
            return _LIMIT_WORDS.get(str(value), (str(value), str(value)))[f.zh(language)]
        if unit in _TIMES or unit in ("B", "bytes", "byte", "bit/s", "s"):
            return value_text(value, unit, quantity, (), language)
        if is_share(quantity, unit):
            return f.limit_percent(value, sign=bool(_SIGNED.search(quantity)))
        return f"{f.exact(value)} {_unit(unit, language)}".strip()

    if op == "band":
        return f"{one(low)} .. {one(high)}"
    edge = low if low is not None else high
    sign = {">=": "≥", "<=": "≤", "==": "=", "set": "∈"}.get(op, op)
    return f"{sign} {one(edge)}" if edge is not None else sign


def margin_text(margin: Any, unit: str, quantity: str, language: str = "en") -> str:
    """Format the distance to the limit: percentage points for ratios, the unit of the value for others."""
    got = f.number(margin)
    if got is None:
        return ""
    plus = "+" if got > 0 else ""
    if is_share(quantity, unit):
        points = "个百分点" if f.zh(language) else "pp"
        return f"{plus}{f.rounded(got * 100, 2, (got * 0,))} {points}"
    return plus + value_text(got, unit, quantity, (0,), language)


def interval_text(check: dict[str, Any], words: Words) -> str:
    """Format an interval as "[25.10 %, 27.30 %]", a one-sided one with an infinite end, or its note."""
    interval = check.get("interval")
    if not interval:
        return ""
    low, high = f.number(interval.get("low")), f.number(interval.get("high"))
    if low is None and high is None:
        return words.text(interval.get("note")) or words("no_interval")
    unit, quantity = str(check.get("unit", "1")), str(check.get("quantity", ""))
    limits = _limits(check)
    left = "-∞" if low is None else value_text(low, unit, quantity, limits, words.language)
    right = "+∞" if high is None else value_text(high, unit, quantity, limits, words.language)
    return f"[{left}, {right}]"


def check_row(check: dict[str, Any], words: Words) -> dict[str, Any]:
    """Return one check as printed: title, value, limit, interval, margin, verdict in words, reason, evidence."""
    unit, quantity, language = str(check.get("unit", "1")), str(check.get("quantity", "")), words.language
    value = check.get("value")
    shown = value_text(value, unit, quantity, _limits(check), language)
    if value is None and check["verdict"] == "pass":
        shown = ""  # a question without a number, answered; a number that is missing never passes and is printed as such
    because = check.get("because")
    ends = check.get("interval") or {}
    return {
        "id": check["id"],
        "title": words.text(check["title"]),
        "verdict": check["verdict"],
        "verdict_text": words.of("verdicts", check["verdict"]),
        "because": because,
        "because_text": words.of("because", because) if because else "",
        "severity": check.get("severity", "blocking"),
        "severity_text": words.of("severities", check.get("severity", "blocking")),
        "value": shown,
        "value_exact": None if value is None else f.exact(value),
        "limit": limit_text(check.get("limit"), unit, quantity, language),
        "limit_exact": " .. ".join(dict.fromkeys(f.exact(v) for v in _limits(check))),  # an exact number has two equal ends
        "interval": interval_text(check, words),
        "interval_is_note": bool(ends) and f.number(ends.get("low")) is None and f.number(ends.get("high")) is None,
        "margin": margin_text(check.get("margin"), unit, quantity, language),
        "margin_exact": None if check.get("margin") is None else f.exact(check["margin"]),
        "reason": words.text(check.get("reason")),
        "source": check.get("source", ""),
        "arm": check.get("arm"),
        "tier": check.get("tier"),
        "host": check.get("host"),
        "unit": unit,
        "evidence": list(check.get("evidence") or []),
        "numeric": f.number(value) is not None,
    }


def claims_matrix(claims: list[dict[str, Any]], words: Words) -> dict[str, Any]:
    """Return the table arm x claim: {arms, rows: [{claim, title, cells: [{status, text, holds, of}]}]}; a cell shows its worst state."""
    arms: list[str] = []
    names: dict[str, str] = {}
    cells: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        if claim["arm"] not in arms:
            arms.append(claim["arm"])
        names.setdefault(claim["claim"], words.text(claim["title"]))
        cells.setdefault((claim["claim"], claim["arm"]), []).append(claim["status"])
    rows = []
    for name, title in names.items():
        row = [_cell(cells.get((name, arm), []), words) for arm in arms]
        rows.append({"claim": name, "title": title, "cells": row})
    return {"arms": [{"arm": arm, "title": arm_title(arm, words)} for arm in arms], "rows": rows}


def arm_title(arm: Any, words: Words) -> str:
    """Return the name of an arm; nothing for no arm."""
    return _arm_title(str(arm), words.language) if arm else ""


def claim_rows(claims: list[dict[str, Any]], words: Words) -> list[dict[str, Any]]:
    """Return every claim as a row: where it stands, its value against its limit, and the reason."""
    rows = []
    for claim in claims:
        unit, name = str(claim.get("unit", "1")), str(claim["claim"])
        limit = claim.get("limit") or {}
        bounds = tuple(v for v in (limit.get("low"), limit.get("high")) if f.number(v) is not None)
        rows.append(
            {
                "claim": name,
                "title": words.text(claim["title"]),
                "arm": claim["arm"],
                "arm_title": arm_title(claim["arm"], words),
                "run": claim.get("run"),
                "tier": claim.get("tier"),
                "status": claim["status"],
                "status_text": words.of("claim_statuses", claim["status"]),
                "value": value_text(claim.get("value"), unit, name, bounds, words.language) if claim.get("value") is not None else "",
                "limit": limit_text(limit, unit, name, words.language),
                "reason": words.text(claim.get("reason")),
                "attribution": claim.get("attribution"),
                "attribution_text": words.of("attributions", claim["attribution"]) if claim.get("attribution") else "",
                "evidence": list(claim.get("evidence") or []),
            }
        )
    return rows


def untested(document: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of what was not tested: those that both parties agreed on, and those that the plan does not ask for or nothing tells.

    Verdicts of earlier judges do not say which (`agreed`): there the rows that name a claim are those of the plan.
    """
    rows = list(document.get("not_tested") or [])
    agreed = [row for row in rows if row.get("agreed", "claim" in row)]
    return agreed, [row for row in rows if row not in agreed]


def _unit(unit: str, language: str) -> str:
    """Return the unit as printed behind a number; plain numbers and counts have none."""
    if unit == "lanes" and f.zh(language):
        return "通道"
    return {"percent": "%", "1": "", "count": "", "ratio": "", "token/s": "tok/s", "tokens/s": "tok/s"}.get(unit, unit)


def _cell(statuses: list[str], words: Words) -> dict[str, Any]:
    """Return the worst of several states and how many hold."""
    if not statuses:
        return {"status": "absent", "text": "", "holds": 0, "of": 0}
    worst = min(statuses, key=lambda s: _STATUS_ORDER.index(s) if s in _STATUS_ORDER else 0)
    return {"status": worst, "text": words.of("claim_statuses", worst), "holds": statuses.count("holds"), "of": len(statuses)}


def _limits(check: dict[str, Any]) -> tuple[Any, ...]:
    """Return the numeric ends of a check's limit."""
    limit = check.get("limit") or {}
    return tuple(v for v in (limit.get("low"), limit.get("high")) if f.number(v) is not None)
