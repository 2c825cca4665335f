"""The vendor's other claims as cells of a run: model load, checkpoint write, raw read of the tier. For information; no limit is agreed.

A run may bring `cells.jsonl` (docs/evidence-format.md): {seq, cell, started_ns, ended_ns, bytes, cold, boot_id}. Times are of the
target's monotonic clock.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates import remedies
from gates.declared import Declared
from gates.g3.declared import CELLS, OPTIONAL
from gates.g3.limits import geometric
from gates.g3.published import with_published
from gates.model import CheckResult, Verdict
from gates.readers.places import host_of_cell, hosts_of
from gates.readers.strict import Reader, at, count
from gates.rules.claim import Findings, Run
from gates.rules.estimates import NS, to_decimal
from gates.rules.standing import Standing, refused
from gates.text import Text

if TYPE_CHECKING:
    from gates.bundle import Bundle

FILE = "cells.jsonl"
SECTOR = 512


def cell_checks(data: Findings, bundle: Bundle, standing: Standing) -> tuple[CheckResult | dict[str, Any], ...]:
    """Return one check for each optional claim that the plan asks to be told and a run measured, else its entry under not tested."""
    plan = data.plan
    asked = {claim: declared for claim, declared in OPTIONAL.items() if plan.g3.optional.get(claim) == "advisory"}
    rows = {run.key: _rows(bundle, run) for run in data.runs}
    return tuple(_check(claim, declared, data, rows, standing) for claim, declared in asked.items())


def _rows(bundle: Bundle, run: Run) -> list[dict[str, Any]] | None:
    """Return the cells of a run; empty where it measured none, None where they cannot be read."""
    reader = Reader(bundle, run.pack.path("").rstrip("/"))
    if not bundle.has(run.pack.path(FILE)):
        return []
    rows = reader.journal(FILE)
    return None if reader.problems else rows


def _check(
    claim: str, declared: Declared, data: Findings, rows: dict[str, list[dict[str, Any]] | None], standing: Standing
) -> CheckResult | dict[str, Any]:
    cell = CELLS[claim]
    files = tuple(run.pack.path(FILE) for run in data.runs if rows[run.key] is None or any(r.get("cell") == cell for r in rows[run.key] or []))
    blank = declared.blank(data.plan, evidence=files)
    if not files:
        reason = Text("No cell of this attempt measures it; advisory.", "本次尝试没有相应测点；仅供参考的项目。")
        return {"check": declared.id, "title": declared.title.json(), "reason": reason.json()}
    refusal = standing.performance()
    if refusal:
        return refused(blank, refusal)
    blank = replace(blank, change=remedies.told(files))
    hosts = sorted({host for run in data.runs for host in hosts_of(run.pack)})
    if len(hosts) < 2:
        return _at_one(claim, blank, data, rows)
    told = [(host, _at_one(claim, blank, data, {key: _of(found, host) for key, found in rows.items()})) for host in hosts]
    host, worst = min(told, key=lambda one: (one[1].verdict is Verdict.PASS, one[1].value or 0))  # one that does not tell decides before any figure
    return replace(worst, reason=Text("{h}: {r}", "{h}：{r}").fill(h=host, r=worst.reason), host=host)


def _of(rows: list[dict[str, Any]] | None, host: str) -> list[dict[str, Any]] | None:
    return None if rows is None else [row for row in rows if host_of_cell(row) == host]


def _at_one(claim: str, blank: CheckResult, data: Findings, rows: dict[str, list[dict[str, Any]] | None]) -> CheckResult:
    """Return the check over the cells of one engine host."""
    cell = CELLS[claim]
    arms = {arm: [_cell(rows[run.key], cell) for run in data.of(arm)] for arm in ("baseline", "candidate")}
    times: dict[str, list[tuple[Fraction, int]]] = {}
    for arm, found in arms.items():
        whole = [row for row in found if row is not None]
        if not whole or len(whole) != len(found):
            missing = Text(
                "A run of {a} has no such cell, or not a cold one with its times and bytes (of a model: as many read as its weights have).",
                "{a} 有轮次缺少该测点，或不是带时间与字节数的冷态测点（模型加载须由设备读取不少于权重的字节数）。",
            )
            return replace(blank, reason=missing.fill(a=arm))
        times[arm] = whole
    if len({size for found in times.values() for _, size in found}) != 1:
        return replace(blank, reason=Text("The runs did not move the same number of bytes.", "各轮次的字节数不相等。"))
    size = times["baseline"][0][1]
    slow, fast = (Fraction(geometric([t for t, _ in times[arm]])) for arm in ("baseline", "candidate"))
    ratio = to_decimal(slow / fast, 3)
    if claim == "tier_read_bandwidth":
        value = to_decimal(size * NS / fast, 0)
        told = Text("{v} GB/s, {r} times the baseline's. For information, no limit is agreed.", "{v} GB/s，为基线的 {r} 倍。仅供参考，未约定限值。")
        told = told.fill(v=to_decimal(Fraction(value) / 10**9, 3), r=ratio)
    else:
        value = ratio
        told = Text(
            "{a} s with the baseline, {b} s with the candidate: {r} times as fast. For information, no limit is agreed.",
            "基线 {a} s，产品 {b} s：{r} 倍。仅供参考，未约定限值。",
        ).fill(a=to_decimal(slow / NS, 3), b=to_decimal(fast / NS, 3), r=ratio)
    return replace(blank, change=None, verdict=Verdict.PASS, reason=with_published(data.plan, claim, told), value=value)


def _cell(rows: list[dict[str, Any]] | None, cell: str) -> tuple[Fraction, int] | None:
    """Return (nanoseconds, bytes) of the one cold cell of a kind, or None."""
    found = [row for row in rows or [] if row.get("cell") == cell]
    if len(found) != 1 or found[0].get("cold") is not True:
        return None
    if cell == "model_load" and not _weights_were_read(found[0]):
        return None
    begun, ended, size = count(found[0].get("started_ns")), count(found[0].get("ended_ns")), count(found[0].get("bytes"))
    return None if begun is None or ended is None or not size or ended <= begun else (Fraction(ended - begun), size)


def _weights_were_read(row: dict[str, Any]) -> bool:
    """Return whether the device or the mount below the weights read all of them. Where neither counts (both null) nothing is held against it."""
    disk = _grown(row, "disk", "read_sectors")
    nfs = _grown(row, "nfs", "server_read_bytes")
    size, told = count(row.get("bytes")), [moved for moved in (None if disk is None else disk * SECTOR, nfs) if moved is not None]
    if not told:
        return all(f"{name}_{when}" in row and row[f"{name}_{when}"] is None for name in ("disk", "nfs") for when in ("before", "after"))
    return size is not None and max(told) >= size


def _grown(row: dict[str, Any], name: str, key: str) -> int | None:
    low, high = count(at(row.get(f"{name}_before"), key)), count(at(row.get(f"{name}_after"), key))
    return None if low is None or high is None or high < low else high - low
