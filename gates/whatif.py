"""What if: stored evidence under another plan, or under this judge where another one judged it, check by check. It is no verdict.

Nothing is kept and nothing follows from it. A limit that is moved after the figures are known decides nothing; it shows how near they were.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gates.bundle import Bundle
from gates.judge import JUDGE_VERSION, RULES_HASH, judge
from gates.plan import Plan
from gates.text import Text

NO_VERDICT = Text(
    "This is no verdict: the evidence was looked at under a plan that was not agreed before it, or by another judge. What was sealed stands.",
    "这不是判定：此处按并非事先约定的计划、或由另一判定程序查看证据。已封存的计划及其判定不变。",
)
_COMPARED = ("verdict", "because", "value", "limit", "reason")
_OF_READER = ("reader", "observations", "problems", "sha256")
Fields = dict[str, Any]


def what_if(bundle: Bundle, plan: Plan | None = None) -> Fields:
    """Return how the judgement would differ under another plan; without one, by this judge alone.

    {before, sealed, other, plan: [...], judge, stored: [...], read: [...], checks: [...], claims: [...]}. `before` is the head of the verdict
    that the bundle holds, or null. `judge` names the judge that the bundle was made by and this one; where they differ, `stored` holds what
    this judge answers otherwise by itself, and `read` the same file by file: what the answers rest on, and with which values.
    Raises Unreadable when the bundle cannot be judged.
    """
    sealed = judge(bundle)
    other = judge(bundle.with_plan(plan)) if plan is not None and plan.hash != bundle.plan.hash else sealed
    made = {key: bundle.manifest.get(key) for key in ("judge_version", "rules_hash")}
    here = {"judge_version": JUDGE_VERSION, "rules_hash": RULES_HASH}
    before = bundle.stored_verdict
    otherwise = before is not None and made != here
    return {
        "no_verdict": NO_VERDICT.json(),
        "gate": bundle.gate,
        "before": _head(before) if before is not None else None,
        "sealed": _head(sealed),
        "other": _head(other),
        "plan": plan_changes(bundle.plan.data, plan.data) if plan is not None else [],
        "judge": {"bundle": made, "here": here, "same": made == here},
        "stored": _rows(before, sealed) if before is not None and otherwise else [],
        "read": read_otherwise(before, sealed) if before is not None and otherwise else [],
        "checks": _rows(sealed, other),
        "claims": _claims(sealed, other),
    }


def read_otherwise(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Fields]:
    """Return, file by file, what two judges read otherwise of one evidence: {path, before, after, read, checks: [{check, title, from, to}]}.

    `before` and `after` tell whether the first and the second answers rest on the file; `from` and `to` are the values that each took from it
    (with others, where a check rests on several). `read` is {from, to} where the readers themselves made something else of the file, each
    {reader, observations, problems, sha256} or null, and null where they made the same, or where the first verdict is of a judge that did not
    keep it. `quadgate read` shows what this version reads of a single file.
    """
    old, new = _checks(before), _checks(after)
    files: dict[str, Fields] = {}
    for key in dict.fromkeys((*new, *old)):
        a, b = old.get(key) or {}, new.get(key) or {}
        rested, rests = (tuple(row.get("evidence") or ()) for row in (a, b))
        if all(a.get(name) == b.get(name) for name in ("verdict", "value", "unit", "evidence")):
            continue
        told = {"check": key, "title": (b or a).get("title"), "from": _value(a), "to": _value(b)}
        for path in dict.fromkeys((*rested, *rests)):
            row = files.setdefault(path, {"path": path, "before": False, "after": False, "read": None, "checks": []})
            row["before"], row["after"] = row["before"] or path in rested, row["after"] or path in rests
            row["checks"].append(told)
    for path, pair in _read_by_readers(before, after).items():
        row = files.setdefault(path, {"path": path, "before": pair["from"] is not None, "after": pair["to"] is not None, "read": None, "checks": []})
        row["read"] = pair
    return [files[path] for path in sorted(files)]


def _read_by_readers(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Fields]:
    """Return the files of which the readers of two judges made something else; none where one of the verdicts does not hold what they made."""
    old, new = (_readings(document) for document in (before, after))
    if old is None or new is None:
        return {}
    return {path: {"from": old.get(path), "to": new.get(path)} for path in sorted({*old, *new}) if old.get(path) != new.get(path)}


def _readings(document: Mapping[str, Any]) -> dict[str, Fields] | None:
    rows = document.get("readings")
    if not isinstance(rows, list):
        return None
    return {str(row["path"]): {k: row.get(k) for k in _OF_READER} for row in rows if isinstance(row, Mapping) and "path" in row}


def _value(row: Mapping[str, Any]) -> Fields:
    return {name: row.get(name) for name in ("verdict", "value", "unit")}


def plan_changes(before: Any, after: Any, path: str = "") -> list[Fields]:
    """Return every field of the plan that differs, by its dotted path: {path, from, to}."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [k for k in (*after, *(k for k in before if k not in after)) if before.get(k) != after.get(k)]
        return [row for key in keys for row in plan_changes(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))]
    return [] if before == after else [{"path": path, "from": before, "to": after}]


def _head(document: Mapping[str, Any]) -> Fields:
    return {key: document.get(key) for key in ("verdict", "because", "plan_hash", "summary")}


def _checks(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the checks of a verdict by id; a stored one may be of any judge, so what is no check is left out."""
    rows = document.get("checks")
    return {str(c["id"]): c for c in rows if isinstance(c, Mapping) and "id" in c} if isinstance(rows, list) else {}


def _rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Fields]:
    old, new = _checks(before), _checks(after)
    out = []
    for key in dict.fromkeys((*new, *old)):
        a, b = old.get(key) or {}, new.get(key) or {}
        if any(a.get(name) != b.get(name) for name in _COMPARED):
            row: Fields = {"check": key, **{name: (b or a).get(name) for name in ("title", "severity", "quantity", "unit")}}
            out.append(row | {"from": {name: a.get(name) for name in _COMPARED}, "to": {name: b.get(name) for name in _COMPARED}})
    return out


def _claims(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Fields]:
    old, new = ({(str(c["claim"]), str(c["arm"])): c for c in d.get("claims") or []} for d in (before, after))
    return [
        {
            "claim": key[0],
            "arm": key[1],
            "title": (new.get(key) or old.get(key) or {}).get("title"),
            "from": (old.get(key) or {}).get("status"),
            "to": (new.get(key) or {}).get("status"),
        }
        for key in dict.fromkeys((*new, *old))
        if (old.get(key) or {}).get("status") != (new.get(key) or {}).get("status")
    ]
