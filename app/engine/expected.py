"""How long a measured run will take. Pure. A run must not be disturbed by a playbook before its end, so the engine waits this long."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

UNKNOWN_S = 60.0  # nobody can tell: look after a minute, then ever more rarely


def of_replies(replies: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the seconds that the targets expect, the longest of them; None when one cannot tell."""
    told = [reply.get("expected_s") for reply in replies]
    if not told or any(not isinstance(value, int | float) or value <= 0 for value in told):
        return None
    return float(max(told))  # type: ignore[type-var,arg-type]


def of_history(params: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the seconds by earlier runs of the same work: of the same arm the last one, else the longest of any arm.

    Each of `earlier` (the last first) is {"arm", "work", "store_s", "rest_s"}.
    """
    same_work = [run for run in earlier if run.get("work") == work_of(params)]
    if not same_work:
        return None
    same_arm = [run for run in same_work if run.get("arm") == params.get("arm")]
    rest = same_arm[0]["rest_s"] if same_arm else max(run["rest_s"] for run in same_work)
    store = max((run["store_s"] for run in same_work), default=0.0) if params.get("store") else 0.0
    return float(rest) + float(store)


def work_of(params: Mapping[str, Any]) -> str:
    """Return what has to be equal for two runs to take about as long."""
    return json.dumps([params.get(key) for key in ("kind", "tiers", "context_tokens", "suffix_tokens", "output_tokens", "repeat")], sort_keys=True)


def timing(params: Mapping[str, Any], phases: Path) -> dict[str, Any] | None:
    """Return what a run took, from its phases.jsonl, for the runs after it; None when that cannot be told."""
    try:
        rows = [json.loads(line) for line in phases.read_text(encoding="utf-8").splitlines()]
        first, last = min(int(row["started_ns"]) for row in rows), max(int(row["ended_ns"]) for row in rows)
        store = sum(int(row["ended_ns"]) - int(row["started_ns"]) for row in rows if row.get("phase") == "store")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {"arm": params.get("arm"), "work": work_of(params), "store_s": store / 1e9, "rest_s": (last - first - store) / 1e9}
