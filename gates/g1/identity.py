"""Is it what was ordered? Order against packing list against what the machines say, by serial number and both ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates.g1.declared import CAPACITY, FIRMWARE, MODEL, ORDER, SERIALS
from gates.g1.inventory import Inventory, Item
from gates.g1.kinds import KINDS, kind_name, passive, readable
from gates.g1.order import Line, Order, Packed, same_model
from gates.model import CheckResult, Limit
from gates.rules.findings import Finding, State, bad, conclude, good, left_out, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

INPUTS = "evidence/inputs.json"
_SEEN = Text("a survey that sees {s} would tell", "调查读到 {s} 后方可判定")
_TARGET = Text("the host that holds it, named as a target, would change it", "将其所在主机列为目标后方可判定")
_AGREED = Text("an order and a packing list in which this is put right, and a new attempt, would change it", "更正订单与装箱单后由新的尝试判定")
_NO_TOOL = Text("a packing list that names the part by a kind that tools read would change it", "装箱单改用工具可读取的类别后方可判定")
_NO_FIRMWARE = Text("The order names no firmware.", "订单未指定固件。")
_NO_SUCH_FIRMWARE = Text(
    "The packing list holds no part that tools read and for which the order names firmware.", "装箱单中没有订单指定了固件且可由工具读取的部件。"
)
_NO_CAPACITY = Text("The order states no capacity of a drive.", "订单未注明硬盘容量。")
_NO_SUCH_DRIVE = Text("The packing list holds no drive of which the order states the capacity.", "装箱单中没有订单注明了容量的硬盘。")


def order_check(plan: Plan, order: Order) -> CheckResult:
    """Compare order and packing list: model, quantity, and firmware where the packing list states it."""
    total = sum(line.quantity for line in order.lines if _listed(line, order))
    return conclude(
        ORDER.blank(plan),
        order_findings(order),
        passed=Text("Every ordered model is packed in the ordered quantity ({total} items).", "所有订购型号均按订购数量装箱（共 {total} 件）。"),
        words={"total": total},
        value=str(sum(item.quantity for item in order.packed)),
        limit=Limit("==", str(total), str(total)),
    )


def order_findings(order: Order) -> Iterator[Finding]:
    """Return what order and packing list say of each other, line by line and item by item."""
    for problem in order.problems:
        yield Finding(State.UNKNOWN, problem, (INPUTS,), change=_AGREED)
    for line in order.lines:
        if _listed(line, order):
            yield _line_finding(line, order)
    for item in order.packed:
        line_of = order.line_of(item)
        if line_of is None:
            yield bad("{what} is packed but was not ordered", "{what}在装箱单中但未订购", INPUTS, what=item.name)
        elif item.firmware and line_of.firmware and item.firmware not in line_of.firmware:
            words = "the packing list states firmware {fw} for {s}, which the order does not allow", "装箱单中 {s} 的固件 {fw} 不在订单允许范围内"
            yield bad(*words, INPUTS, fw=item.firmware, s=item.serial or item.model)


def _listed(line: Line, order: Order) -> bool:
    """Tell whether what a line orders must stand in the packing list."""
    counted = line.kind in KINDS and KINDS[line.kind].counted
    return not counted or bool(order.of(line.kind))


def _line_finding(line: Line, order: Order) -> Finding:
    count = sum(item.quantity for item in order.of(line.kind) if same_model(line.model, item.model))
    words: dict[str, Any] = {"model": line.model, "want": line.quantity, "have": count}
    if count == line.quantity:
        return good("{model}: {have} packed", "{model}：装箱 {have} 件", INPUTS, **words)
    return bad("{model}: {want} ordered, {have} packed", "{model}：订购 {want} 件，装箱 {have} 件", INPUTS, **words)


def serial_checks(plan: Plan, order: Order, inventory: Inventory) -> Iterator[CheckResult]:
    """Compare the serial numbers of each kind as sets, both ways: what is missing, and what is there and was not delivered."""
    for kind in order.kinds():
        packed = order.of(kind)
        if passive(kind) or not packed:
            continue
        yield conclude(
            SERIALS.blank(plan, kind=kind, name=kind_name(kind)),
            _serial_findings(kind, packed, order, inventory),
            passed=Text("Every delivered serial number was found, and no other ({n} in all).", "装箱单上的 {n} 个序列号全部找到，且无多余。"),
            value=str(sum(1 for item in packed if any(i.serial == item.serial for i in inventory.of(kind)))),
            limit=Limit("set", str(len(packed)), str(len(packed))),
        )


def _serial_findings(kind: str, packed: tuple[Packed, ...], order: Order, inventory: Inventory) -> Iterator[Finding]:
    if not readable(kind):
        yield unknown("no tool reads the serial numbers of the kind {kind}", "没有工具可读取类别 {kind} 的序列号", INPUTS, remedy=_NO_TOOL, kind=kind)
        return
    gaps = inventory.gaps.get(kind, [])
    yield from gaps
    seen = inventory.of(kind)
    files = tuple(sorted({path for item in seen for path in item.evidence}))
    for item in packed:
        at = [i.host for i in seen if i.serial == item.serial]
        hosts = [host for i in seen if i.serial == item.serial for host in (i.host, *i.also_at)]
        where = item.host or ""
        if not at and where and any(i.host == where for i in seen) and not KINDS[kind].only_delivered:
            yield bad("{where} reports another serial number than {s}", "{where} 报告的序列号不是 {s}", *files, INPUTS, s=item.serial, where=where)
        elif not at and gaps:
            yield unknown("{s} was not seen, but the list is not complete", "未见到 {s}，但清单不完整", *files, s=item.serial)
        elif not at and not KINDS[kind].only_delivered:
            words = "no host of this engagement reports {s} ({model}): name it as a target", "本项目没有主机报告 {s}（{model}）：请将其列为目标主机"
            yield unknown(*words, *files, INPUTS, remedy=_TARGET, s=item.serial, model=item.model)
        elif not at:
            yield bad("{s} ({model}) is missing", "缺少 {s}（{model}）", *files, INPUTS, s=item.serial, model=item.model)
        elif len(at) > 1:
            yield bad("{s} is reported {n} times ({at})", "{s} 被报告 {n} 次（{at}）", *files, s=item.serial, n=len(at), at=", ".join(at))
        elif where and where not in hosts:
            yield bad(
                "{s} is in {at}, not in {where}", "{s} 位于 {at}，而不是 {where}", *files, INPUTS, s=item.serial, at=", ".join(hosts), where=where
            )
        else:
            yield good("{s} is there", "{s} 在位", *files, s=item.serial)
    known = {item.serial for item in order.packed}
    for found in seen:
        if KINDS[kind].only_delivered and found.serial not in known:
            words = "{s} ({model}) is in {at} and not on the packing list", "{at} 中的 {s}（{model}）不在装箱单上"
            yield bad(*words, *found.evidence, s=found.serial, model=found.model or "?", at=found.host)


def model_check(plan: Plan, order: Order, inventory: Inventory) -> CheckResult:
    """Compare the model that each machine reports with the packing list's, serial by serial."""

    def findings() -> Iterator[Finding]:
        for item, seen in _pairs(order, inventory):
            if seen is None:
                yield _not_seen(item)
            elif not seen.model:
                yield unknown("{s} reports no model", "{s} 未报告型号", *seen.evidence, s=item.serial)
            elif same_model(item.model, seen.model):
                yield good("{s} is a {model}", "{s} 型号为 {model}", *seen.evidence, s=item.serial, model=item.model)
            else:
                words = "{s} reports the model {is_}, packed was {model}", "{s} 报告型号 {is_}，装箱单为 {model}"
                yield bad(*words, *seen.evidence, s=item.serial, is_=seen.model, model=item.model)

    passed = Text("Every part reports the delivered model ({n} in all).", "全部 {n} 个部件报告的型号与装箱单一致。")
    return conclude(MODEL.blank(plan), findings(), passed=passed)


def firmware_check(plan: Plan, order: Order, inventory: Inventory) -> CheckResult | dict[str, Any]:
    """Compare each part's firmware with the list that the order allows."""
    blank = FIRMWARE.blank(plan)
    bound = [(item, seen, line) for item, seen in _pairs(order, inventory) if (line := order.line_of(item)) and line.firmware]
    if not bound:
        return left_out(blank.id, blank.title, _NO_SUCH_FIRMWARE if any(line.firmware for line in order.lines) else _NO_FIRMWARE)

    def findings() -> Iterator[Finding]:
        for item, seen, line in bound:
            allowed = ", ".join(line.firmware)
            if seen is None:
                yield _not_seen(item)
            elif not seen.firmware:
                yield unknown("{s} reports no firmware", "{s} 未报告固件版本", *seen.evidence, s=item.serial)
            elif seen.firmware in line.firmware:
                yield good("{s} runs {fw}", "{s} 固件为 {fw}", *seen.evidence, s=item.serial, fw=seen.firmware)
            else:
                words = "{s} runs firmware {fw}; the order allows {allowed}", "{s} 的固件为 {fw}；订单允许 {allowed}"
                yield bad(*words, *seen.evidence, INPUTS, s=item.serial, fw=seen.firmware, allowed=allowed)

    every = ", ".join(dict.fromkeys(fw for _, _, line in bound for fw in line.firmware))
    passed = Text("Every part runs an allowed firmware ({n} in all).", "全部 {n} 个部件的固件均在允许范围内。")
    return conclude(blank, findings(), passed=passed, limit=Limit("set", every, every))


def capacity_check(plan: Plan, order: Order, inventory: Inventory) -> CheckResult | dict[str, Any]:
    """Compare each drive's capacity in bytes with what its own order line states (at least)."""
    blank = CAPACITY.blank(plan)
    bound = [
        (item, seen, line) for item, seen in _pairs(order, inventory) if item.kind == "drive" and (line := order.line_of(item)) and line.capacity
    ]
    if not bound:
        stated = any(line.kind == "drive" and line.capacity for line in order.lines)
        return left_out(blank.id, blank.title, _NO_SUCH_DRIVE if stated else _NO_CAPACITY)

    def findings() -> Iterator[Finding]:
        for item, seen, line in bound:
            if seen is None:
                yield _not_seen(item)
            elif seen.capacity is None or line.capacity is None:
                yield unknown("{s} reports no capacity", "{s} 未报告容量", *seen.evidence, s=item.serial)
            elif seen.capacity >= line.capacity:
                yield good("{s} holds {b} B", "{s} 容量 {b} B", *seen.evidence, value=seen.capacity, s=item.serial, b=seen.capacity)
            else:
                words = "{s} holds {b} B, ordered were {want} B", "{s} 容量 {b} B，订购为 {want} B"
                yield bad(*words, *seen.evidence, INPUTS, value=seen.capacity, s=item.serial, b=seen.capacity, want=f"{line.capacity:f}")

    smallest = _smallest(bound)
    # The line that is nearest to what was ordered: a value and the limit of one and the same line.
    nearest = min(smallest, key=lambda row: Fraction(row[1]) / Fraction(row[2]), default=None)
    rows = [f"{model}: {seen:f} B >= {least:f} B" for model, seen, least in smallest]
    return conclude(
        blank,
        findings(),
        passed=Text("Every drive holds at least the ordered capacity, {n} in all ({rows}).", "全部 {n} 块硬盘均不小于订购容量（{rows}）。"),
        words={"rows": Text("; ".join(rows), "；".join(rows))},
        value=nearest[1] if nearest else None,
        limit=Limit(">=", nearest[2] if nearest else max(line.capacity for _, _, line in bound if line.capacity)),
        margin=nearest[1] - nearest[2] if nearest else None,
    )


def _smallest(bound: Sequence[tuple[Packed, Item | None, Line]]) -> list[tuple[str, Decimal, Decimal]]:
    """Return (model, smallest capacity seen, ordered capacity) of each order line of which a drive tells its capacity."""
    lines = {id(line): line for _, _, line in bound}
    rows = []
    for key, line in lines.items():
        seen = [item.capacity for _, item, of in bound if id(of) == key and item is not None and item.capacity is not None]
        if seen and line.capacity:
            rows.append((line.model, min(seen), line.capacity))
    return rows


def _pairs(order: Order, inventory: Inventory) -> Iterator[tuple[Packed, Item | None]]:
    for item in order.packed:
        if readable(item.kind):
            yield item, inventory.find(item.kind, item.serial)


def _not_seen(item: Packed) -> Finding:
    words = {"s": item.serial, "model": item.model}
    return unknown("{s} ({model}) was not seen", "未见到 {s}（{model}）", INPUTS, remedy=_SEEN.fill(s=item.serial), **words)
