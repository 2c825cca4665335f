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
    "This is no verdict: the evidence was looked at under a plan that was not agreed before it. What was sealed stands.",
    "这不是判定：此处按并非事先约定的计划查看证据。已封存的计划及其判定不变。",
)
_COMPARED = ("verdict", "because", "value", "limit", "reason")
Fields = dict[str, Any]


def what_if(bundle: Bundle, plan: Plan) -> Fields:
    """Return how the judgement would differ under another plan: {sealed, other, plan: [...], judge, checks: [...], claims: [...]}.

    `judge` names the judge that the bundle was made by and this one; where they differ, `stored` holds what this judge changes by itself.
    Raises Unreadable when the bundle cannot be judged.
    """
    sealed, other = judge(bundle), judge(bundle.with_plan(plan))
    made = {key: bundle.manifest.get(key) for key in ("judge_version", "rules_hash")}
    here = {"judge_version": JUDGE_VERSION, "rules_hash": RULES_HASH}
    return {
        "no_verdict": NO_VERDICT.json(),
        "gate": bundle.gate,
        "sealed": _head(sealed),
        "other": _head(other),
        "plan": plan_changes(bundle.plan.data, plan.data),
        "judge": {"bundle": made, "here": here, "same": made == here},
        "stored": _rows(bundle.stored_verdict, sealed) if bundle.stored_verdict is not None and made != here else [],
        "checks": _rows(sealed, other),
        "claims": _claims(sealed, other),
    }


def plan_changes(before: Any, after: Any, path: str = "") -> list[Fields]:
    """Return every field of the plan that differs, by its dotted path: {path, from, to}."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [k for k in (*after, *(k for k in before if k not in after)) if before.get(k) != after.get(k)]
        return [row for key in keys for row in plan_changes(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))]
    return [] if before == after else [{"path": path, "from": before, "to": after}]


def _head(document: Mapping[str, Any]) -> Fields:
    return {key: document[key] for key in ("verdict", "because", "plan_hash", "summary")}


def _rows(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Fields]:
    old, new = ({str(c["id"]): c for c in d.get("checks") or []} for d in (before, after))
    out = []
    for key in dict.fromkeys((*new, *old)):
        a, b = old.get(key) or {}, new.get(key) or {}
        if any(a.get(name) != b.get(name) for name in _COMPARED):
            row: Fields = {"check": key, "title": (b or a).get("title"), "severity": (b or a).get("severity")}
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
