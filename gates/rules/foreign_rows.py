"""Rows of a run that its step cannot have brought: phases and tiers that it does not have. An unexpected row is no better than a missing one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gates.model import Problem
from gates.readers.strict import at
from gates.rules.claim import Run
from gates.text import Text

Place = tuple[Any, Any]  # phase and tier


def problems(run: Run) -> Iterator[Problem]:
    """Yield, for each file of a run, the phases and tiers that its step does not have, and phases that are there more than once."""
    own = _places(run)
    stored: set[Place] = {("store", tier) for tier in run.tiers} if ("store", None) in own else set()
    looks = {(None, tier) for tier in (None, *run.tiers)}
    told = run.pack.workload.get("tiers")
    for name, places, allowed in (
        ("phases.jsonl", [_place(row) for row in run.pack.phases], own),
        ("records.jsonl", [(r.phase, r.tier) for r in run.pack.requests], own | stored),
        ("counters.jsonl", [_place(row) for row in run.pack.counters], {place for place in own if place[0] in ("store", "measure", "repeat")}),
        ("coldness.jsonl", [(None, row.get("tier")) for row in run.pack.coldness], looks),
        ("workload.json", [("measure", at(row, "tier")) for row in (told if isinstance(told, list) else ())], own),
    ):
        yield from _foreign(run, name, places, allowed)
    rows = Counter(_place(row) for row in run.pack.phases if row.get("phase") in ("warmup", "canary"))  # the others are counted by completeness
    for place in (place for place, n in rows.items() if n > 1):
        text = Text("{p}: the phase {n} is there more than once.", "{p}：阶段“{n}”重复出现。")
        yield Problem("foreign_row", text.fill(p=run.pack.path("phases.jsonl"), n=_name(place)), run.pack.path("phases.jsonl"))


def _places(run: Run) -> set[Place]:
    """Return the phases that a step has, each with its tier."""
    params = run.spec.params
    found: set[Place] = {("cool", None), ("warmup", None), *(("measure", tier) for tier in run.tiers)}
    found |= {(name, None) for name in ("store", "canary") if params.get(name)}
    if params.get("repeat"):
        found.add(("repeat", run.tiers[0]))
    if params.get("cells") or params.get("clients"):
        found.add(("cell", None))
    return found


def _place(row: Mapping[str, Any]) -> Place:
    phase, tier = row.get("phase"), row.get("tier")
    return (phase if isinstance(phase, str) else None, tier if tier is None or isinstance(tier, int) else str(tier))


def _foreign(run: Run, name: str, places: Iterable[Place], allowed: set[Place]) -> Iterator[Problem]:
    known = Counter((phase, tier if tier is None or isinstance(tier, int) else str(tier)) for phase, tier in places)
    for place, n in known.items():
        if place not in allowed:
            text = Text("{p}: {k} rows are of {n}, which this step does not have.", "{p}：{k} 行属于 {n}，本步骤无此阶段或档位。")
            yield Problem("foreign_row", text.fill(p=run.pack.path(name), k=n, n=_name(place)), run.pack.path(name))


def _name(place: Place) -> str:
    phase, tier = place
    return " ".join(str(part) for part in (phase, None if tier is None else f"c{tier}") if part is not None) or "-"
