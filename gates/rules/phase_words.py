"""What the probe itself says of the phases of a run. It measures on where one did not go as it should, and leaves the judging to us."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gates.readers.strict import at, count
from gates.rules.claim import Finding, Run, unknown
from gates.text import Text

_QUOTED = 200  # characters of a row's own words
_ELSEWHERE = ("store", "cell")  # judged by claims and checks of their own
_TELLS = Text("a new attempt in which the probe finds the phase {n} as it should be would tell", "探针确认阶段“{n}”正常的新尝试方可判定")


def not_ok(run: Run) -> Iterator[Finding]:
    """Yield each phase of which the probe does not say that it went as it should, with the row's own words.

    It proves no fault, and leaves nothing proven. Cooling after which some pages were resident is held against the plan's limit by
    page_cache_cold, and is told here only where something else was wrong with it.
    """
    for row in run.pack.phases:
        name, tier = str(row.get("phase")), row.get("tier")
        if row.get("ok") is True or name in _ELSEWHERE or (name == "cool" and _only_some_pages(run, row)):
            continue
        shown, words = f"{name} c{tier}" if tier else name, _words(row)
        yield unknown(
            run,
            f"the probe itself does not find the phase {shown} as it should be: {words}.",
            f"探针自身未确认阶段“{shown}”正常：“{words}”。",
            files=("phases.jsonl",),
            change=_TELLS.fill(n=shown),
        )


def _only_some_pages(run: Run, row: dict[str, Any]) -> bool:
    """Return whether all that cooling lacks are pages that were found resident: the engine was restarted, or reset, and nothing broke."""
    looks = [look for look in run.pack.coldness if look.get("when") == "after_cool"]
    renewed = at(row, "detail", "restarted") is True or at(row, "detail", "reset") is not None
    return renewed and at(row, "detail", "error") is None and any((count(look.get("resident_bytes")) or 0) > 0 for look in looks)


def _words(row: dict[str, Any]) -> str:
    said = at(row, "detail", "error", "message")
    told = said if isinstance(said, str) else json.dumps({"ok": row.get("ok"), "detail": row.get("detail")}, ensure_ascii=False, default=str)
    return told if len(told) <= _QUOTED else told[:_QUOTED] + "..."
