"""Raw reads: no I/O error, no text before fio's JSON, samples for every delivered drive, and drives that are alike in speed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates.g1.declared import RAW_IO, SPREAD
from gates.g1.inventory import Inventory, take_drives
from gates.g1.order import Packed
from gates.g1.pack import HostPack
from gates.model import CheckResult, Limit
from gates.rules.estimates import beside, percent
from gates.rules.findings import Finding, bad, conclude, doubtful, good, left_out, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

IO_FAILURE = re.compile(r"\berror\b|\berr=|i/o|remote i/o|verify", re.IGNORECASE)
ASKED = "read"  # fio's word for sequential reads: what step storage runs on each drive, and what its rates are of
FAILED = {"io_error"}  # problems that are themselves evidence of failed I/O; text before the JSON is one where it speaks of an error


def raw_checks(plan: Plan, packed: tuple[Packed, ...], storage: dict[str, HostPack]) -> Iterator[CheckResult | dict[str, Any]]:
    """Judge the raw reads of step storage. Drives are told by the serial numbers that this step itself read."""
    inventory = Inventory()
    for pack in storage.values():
        if not pack.trouble:
            take_drives(pack, inventory)
    inventory.join_ports()
    findings = {item.serial: _read_finding(item, inventory, storage) for item in packed}
    yield conclude(
        RAW_IO.blank(plan),
        findings.values(),
        passed=Text("Every drive was read without error ({n} in all).", "全部 {n} 块硬盘读取无错误。"),
        value=str(sum(1 for f in findings.values() if f.value is not None)),
        limit=Limit("==", str(len(packed)), str(len(packed))),
    )
    blank = SPREAD.blank(plan)
    models = {item.model: [findings[i.serial] for i in packed if i.model == item.model] for item in packed}
    compared = {model: rows for model, rows in models.items() if len(rows) > 1}
    if not compared:
        alone = Text("The packing list holds only one drive of each model.", "装箱单中每种型号只有一块硬盘。")
        none = Text("The packing list holds no drive.", "装箱单中没有硬盘。")
        yield left_out(blank.id, blank.title, alone if packed else none)
        return
    limit = plan.g1.drive_spread_max
    rows = [_spread_finding(model, rows, limit) for model, rows in compared.items()]
    values = [row.value for row in rows if row.value is not None]
    worst = max(values) if values else None
    yield conclude(
        blank,
        rows,
        passed=Text("The slowest drive is within the limit of the fastest.", "最慢与最快硬盘之差在限值内。"),
        value=worst,
        margin=None if worst is None else limit - worst,
    )


def read_rates(packed: tuple[Packed, ...], storage: dict[str, HostPack]) -> dict[str, Decimal]:
    """Return bytes per second by serial number, for those that were read without a doubt."""
    inventory = Inventory()
    for pack in storage.values():
        if not pack.trouble:
            take_drives(pack, inventory)
    inventory.join_ports()
    rows = {item.serial: _read_finding(item, inventory, storage).value for item in packed}
    return {serial: value for serial, value in rows.items() if value is not None}


def _read_finding(item: Packed, inventory: Inventory, storage: dict[str, HostPack]) -> Finding:
    seen = inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not read", "未读取 {s}", s=item.serial)
    pack = storage[seen.host]
    answers = [pack.answer(name) for name in pack.names("fio") if name.startswith(f"fio.{seen.name}n")]
    if not answers:
        return unknown(
            "{s}: no raw read of {name} was made", "{s}：未对 {name} 进行裸盘读取", pack.path("commands.json"), s=item.serial, name=seen.name
        )
    total = Decimal(0)
    for answer in answers:
        failed = [p for p in answer.problems if p.code in FAILED or (p.code == "text_before_json" and IO_FAILURE.search(p.message.en))]
        if not failed and IO_FAILURE.search(answer.stderr):
            return bad("{s}: fio reported an error: {text}", "{s}：fio 报告错误：{text}", answer.path, s=item.serial, text=answer.stderr[:120])
        if failed:
            return bad("{s}: {why}", "{s}：{why}", answer.path, s=item.serial, why=failed[0].message)
        if answer.problems:
            return doubtful(item.serial, answer.problems, answer.path)
        modes = sorted({str(o.value) for o in answer.all("io.mode")})
        if modes != [ASKED]:
            text = "{s}: the result is of {m}, not of sequential reads", "{s}：结果的读写方式为“{m}”，并非顺序读"
            return unknown(*text, answer.path, s=item.serial, m=", ".join(modes) or "-")
        rates = [o for o in answer.all("io.bandwidth", direction="read") if isinstance(o.value, Decimal) and o.unit == "B/s"]
        device = f"/dev/{answer.name.partition('.')[2]}"
        if len(rates) != 1 or rates[0].labels.get("device") != device or not isinstance(rates[0].value, Decimal):
            return unknown(
                "{s}: the result does not name {device} as what was read",
                "{s}：结果未指明读取对象为 {device}",
                answer.path,
                s=item.serial,
                device=device,
            )
        total += rates[0].value
    paths = [answer.path for answer in answers]
    if total <= 0:
        return unknown("{s}: no bandwidth was measured", "{s}：没有测得带宽", *paths, s=item.serial)
    return good("{s}: {v} B/s", "{s}：{v} B/s", *paths, value=total / len(answers), s=item.serial, v=f"{total:f}")


def _spread_finding(model: str, rows: list[Finding], limit: Decimal) -> Finding:
    """Compare exactly: the difference of fastest and slowest as a share of the fastest."""
    values = [row.value for row in rows if row.value is not None]
    paths = tuple(path for row in rows for path in row.evidence)
    if len(values) != len(rows):
        return unknown("{model}: not every drive has a result", "{model}：并非每块硬盘都有结果", *paths, model=model)
    low, high = min(values), max(values)
    exact = (Fraction(high) - Fraction(low)) / Fraction(high)
    words: dict[str, Any] = {"model": model, "low": f"{low:f}", "high": f"{high:f}", "spread": percent(exact, limit, places=3)}
    text = "{model}: {low} to {high} B/s, {spread} apart", "{model}：{low} 至 {high} B/s，相差 {spread}"
    return (good if exact <= Fraction(limit) else bad)(*text, *paths, value=beside(exact, limit), **words)
