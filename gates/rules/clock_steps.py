"""Was the host's wall clock set while something was measured? Told beside what decides: every duration here is of the monotonic clock.

Receipts that the kernel stamps by the wall clock are held against a distance that the client follows (client.json, receipts.clock_steps); a
step within a run makes those near it doubtful, and the stamps in logs of several hosts no longer fit together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

from gates import declared_common, remedies
from gates.model import CheckResult, Verdict
from gates.plan import Plan
from gates.readers.strict import at, count
from gates.rules.claim import Run
from gates.rules.estimates import NS
from gates.steps import during
from gates.text import Text

Stamp = tuple[str, int, int]  # boot id, monotonic ns, wall ns


def clock_steps(gate: str, plan: Plan, runs: Sequence[Run]) -> CheckResult | dict[str, Any]:
    """Return the advisory check of the largest step of the wall clock in any run; an entry where no run stamps both clocks twice in a boot."""
    declared = declared_common.clock_steps(gate)
    files = tuple(run.pack.path(name) for run in runs for name in ("phases.jsonl", "exit.json"))
    blank = declared.blank(plan, evidence=files)
    steps = [(run, _largest(_stamps(run))) for run in runs]
    known = [(run, step) for run, step in steps if step is not None]
    if not known:
        return declared.not_told(plan)
    if len(known) < len(runs):
        silent = tuple(run.pack.path("phases.jsonl") for run, step in steps if step is None)
        reason = Text("{n} of {m} runs do not stamp both clocks.", "{m} 轮中有 {n} 轮未同时记录两种时钟。")
        return replace(blank, reason=reason.fill(n=len(silent), m=len(runs)), change=remedies.told(silent))
    worst, most = max(known, key=lambda row: row[1])
    limit, value = plan.validity.clock_step_max, Decimal(most) / NS
    told = Text("The wall clock was never set by more than {v} s (at most {l}).", "系统时钟跳变均不超过 {v} s（上限 {l}）。")
    if value > limit.base:
        told = Text("The wall clock was set by {v} s during {r} (at most {l}).", "{r}期间系统时钟跳变 {v} s（上限 {l}）。")
    verdict = Verdict.PASS if value <= limit.base else Verdict.FAIL
    followed = sum(count(at(run.pack.client, "receipts", "clock_steps")) or 0 for run in runs)
    if followed:
        more = Text(" The client followed {n} changes of the clocks' distance.", "客户端共跟随 {n} 次时钟差变化。").fill(n=followed)
        told = Text(told.en + more.en, told.zh + more.zh)
    reason = told.fill(v=f"{value.normalize():f}", l=limit, r=during(worst.key))
    return replace(blank, verdict=verdict, reason=reason, value=value, margin=limit.base - value)


def _stamps(run: Run) -> Iterator[Stamp]:
    """Yield the moments at which one reading of both clocks stands in the evidence of a run: phases, events of a soak (hourly and more), the end."""
    for phase in run.pack.phases:
        yield from _stamp(phase.get("boot_id"), phase.get("started_ns"), phase.get("started_wall_ns"))
    for row in run.pack.events:
        yield from _stamp(row.get("boot_id"), row.get("mono_ns"), row.get("wall_ns"))
    yield from _stamp(at(run.pack.exit, "boot_id"), at(run.pack.exit, "ended_ns"), at(run.pack.exit, "ended_wall_ns"))


def _stamp(boot: Any, mono: Any, wall: Any) -> Iterator[Stamp]:
    first, second = count(mono), count(wall)
    if isinstance(boot, str) and first is not None and second is not None:
        yield boot, first, second


def _largest(stamps: Iterable[Stamp]) -> int | None:
    """Return the largest change (ns) of the distance of the clocks from one moment to the next of a boot, or None."""
    by_boot: dict[str, list[tuple[int, int]]] = {}
    for boot, mono, wall in stamps:
        by_boot.setdefault(boot, []).append((mono, wall - mono))
    rows = [[distance for _, distance in sorted(found)] for found in by_boot.values()]
    changes = [abs(later - earlier) for row in rows for earlier, later in pairwise(row)]
    return max(changes, default=None)
