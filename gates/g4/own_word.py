"""What the probe itself said was not in order: never a pass, whatever the figures are.

A soak that was not stored or cooled as it must be is not judged. One whose load ended with a problem is judged as far as it goes, since an engine
that is gone at the end is the product's: it can fail, and cannot pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gates.model import Problem
from gates.plan import Plan
from gates.readers.strict import at, count
from gates.rules.claim import Run
from gates.rules.estimates import percent
from gates.text import Text

_BEFORE = ("store", "cool")
_PROBLEMS = ("error", "engine_problem", "telemetry_problem")  # of a phase's detail
_PARTED = "attendant"  # the driver lost its engine's host, which rebooted: the soak clock's matter


def unprepared(plan: Plan, run: Run) -> list[Problem]:
    """Return a problem for a store phase or cooling that the probe itself called not in order, and for KV that lay in the page cache behind it.

    Of one that was done again after a reboot only the last counts. The share in memory may be `validity.page_cache_resident_max`, as in a run.
    """
    last = {str(row.get("phase")): row for row in run.pack.phases if row.get("phase") in _BEFORE}
    return [*_complaints(run, last.values()), *_in_memory(plan, run)]


def not_in_order(run: Run) -> list[Problem]:
    """Return a problem for each other phase that the probe itself called not in order."""
    rows = [row for row in run.pack.phases if row.get("phase") not in _BEFORE]
    return list(_complaints(run, [row for row in rows if row.get("phase") != "soak" or at(row, "detail", "error", "kind") != _PARTED]))


def _complaints(run: Run, rows: Any) -> Iterator[Problem]:
    where = run.pack.path("phases.jsonl")
    for row in rows:
        named = [name for name in _PROBLEMS if at(row, "detail", name) is not None]
        if row.get("ok") is True and not named:
            continue
        text = Text("{p}: by the probe's own word the phase {n} was not in order: {w}.", "{p}：探针自身记录阶段“{n}”未正常完成：“{w}”。")
        yield Problem("not_in_order", text.fill(p=where, n=str(row.get("phase")), w=_why(row, named)), where)


def _why(row: Mapping[str, Any], named: list[str]) -> str:
    """Return the row's own words for what was wrong; without such words, all of its detail."""
    words = [at(row, "detail", name, "message") or at(row, "detail", name) for name in named]
    said = "; ".join(str(word) for word in words) or json.dumps(row.get("detail"), ensure_ascii=False, sort_keys=True, default=str)
    return said[:300].rstrip(".")


def _in_memory(plan: Plan, run: Run) -> Iterator[Problem]:
    limit, where = plan.validity.page_cache_resident_max, run.pack.path("coldness.jsonl")
    looks = [row for row in run.pack.coldness if row.get("when") == "after_cool"]
    for row in {(str(at(row, "on", "host")), str(row.get("dir"))): row for row in looks}.values():
        size, resident = count(row.get("bytes")), count(row.get("resident_bytes"))
        if size is None or resident is None:
            text = Text("{p}: nothing tells how much KV lay in the page cache after cooling.", "{p}：未给出冷却后驻留页缓存的 KV 数量。")
            yield Problem("not_cold", text.fill(p=where), where)
        elif resident > limit * size:
            share = percent(Decimal(resident) / size if size else Decimal(1), limit)
            text = Text(
                "{p}: after cooling {v} of the stored KV lay in the page cache (at most {l}).",
                "{p}：冷却后仍有 {v} 的已存 KV 驻留页缓存（上限 {l}）。",
            )
            yield Problem("not_cold", text.fill(p=where, v=share, l=percent(limit)), where)
