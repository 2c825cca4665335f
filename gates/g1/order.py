"""The order and the packing list, from inputs.json. What is wrong in them is a finding, never guessed around. Kinds: gates/g1/kinds.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gates.g1.kinds import needs_serial
from gates.text import Text
from gates.units import BadQuantity, parse_quantity


@dataclass(frozen=True)
class Line:
    """One line of the order. `firmware` empty: the order allows any."""

    kind: str
    model: str
    quantity: int
    firmware: tuple[str, ...] = ()
    capacity: Decimal | None = None  # bytes
    speed: Decimal | None = None  # bit/s


@dataclass(frozen=True)
class Packed:
    """One entry of the packing list: one piece by its serial number, or so many pieces of a kind that carries none (`serial` is then empty)."""

    kind: str
    model: str
    serial: str
    host: str | None = None
    firmware: str | None = None
    quantity: int = 1

    @property
    def name(self) -> Text:
        """Return what a sentence calls it: its model, with the serial number where there is one."""
        return Text("{model} ({s})", "{model}（{s}）").fill(model=self.model, s=self.serial) if self.serial else Text(self.model, self.model)


@dataclass(frozen=True)
class Order:
    """Order and packing list together, with the sentences about what in them cannot be used."""

    lines: tuple[Line, ...] = ()
    packed: tuple[Packed, ...] = ()
    problems: tuple[Text, ...] = field(default=())

    def kinds(self) -> tuple[str, ...]:
        """Return all kinds that are ordered or packed, in order."""
        return tuple(dict.fromkeys([line.kind for line in self.lines] + [item.kind for item in self.packed]))

    def of(self, kind: str) -> tuple[Packed, ...]:
        """Return the packed items of a kind."""
        return tuple(item for item in self.packed if item.kind == kind)

    def line_of(self, item: Packed) -> Line | None:
        """Return the order line that an item fulfils, or None."""
        return next((line for line in self.lines if line.kind == item.kind and same_model(line.model, item.model)), None)


_MAKER = re.compile(r"^(?:(?:AMD|Huawei|Ascend|Instinct)\s+)+", re.IGNORECASE)  # some tools name a part without its maker


def same_model(ordered: str, reported: str) -> bool:
    """Tell whether a reported name is, or contains as a whole word, the ordered model (`MI308X` in `AMD Instinct MI308X`)."""
    name = _MAKER.sub("", ordered.strip())
    return re.search(rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])", reported, re.IGNORECASE) is not None and bool(name)


def parse_order(inputs: Mapping[str, Any]) -> Order:
    """Return order and packing list of inputs.json."""
    problems: list[Text] = []
    order = inputs.get("order")
    order = order if isinstance(order, Mapping) else {}
    raw_lines = order.get("lines") or ([{"kind": "array", **order}] if order.get("model") else [])
    lines = [line for i, raw in enumerate(raw_lines if isinstance(raw_lines, list) else [], 1) if (line := _line(raw, i, problems))]
    if not lines:
        problems.append(Text("the order names nothing", "订单没有任何内容"))
    if order.get("lines") and (order.get("model") is not None or order.get("quantity") is not None):
        problems += _headline(order, lines)
    packing = inputs.get("packing_list")
    packed = [item for i, raw in enumerate(packing if isinstance(packing, list) else [], 1) if (item := _packed(raw, i, problems))]
    if not packed:
        problems.append(Text("the packing list is empty", "装箱单为空"))
    seen: set[str] = set()
    for item in packed:
        if item.serial and item.serial in seen:
            problems.append(Text("serial number {s} stands twice in the packing list", "序列号 {s} 在装箱单中重复").fill(s=item.serial))
        seen.add(item.serial)
    return Order(tuple(lines), tuple(packed), tuple(problems))


def ordered_of(model: str, lines: Iterable[tuple[str, int]]) -> int:
    """Return how many pieces the lines (model, quantity) order of a model, by its whole name: `FX100 rails` are no FX100."""
    return sum(quantity for name, quantity in lines if name.strip().casefold() == model.strip().casefold())


def _headline(order: Mapping[str, Any], lines: Sequence[Line]) -> list[Text]:
    """Return a problem when what the order is for, model and quantity, is not what its lines name."""
    model, quantity = order.get("model"), order.get("quantity")
    named = ordered_of(str(model), ((line.model, line.quantity) for line in lines)) if _filled(model) else 0
    if isinstance(quantity, int) and not isinstance(quantity, bool) and named == quantity:
        return []
    text = Text("the order is for {q} of {m}, and its lines name {n}", "订单为 {m} 共 {q} 件，而各行合计 {n} 件")
    return [text.fill(q=str(quantity)[:40], m=str(model)[:80], n=named)]


def _line(raw: Any, number: int, problems: list[Text]) -> Line | None:
    if not isinstance(raw, Mapping):
        problems.append(Text("order line {n} is not a map", "订单第 {n} 行不是映射").fill(n=number))
        return None
    kind, model, quantity = raw.get("kind"), raw.get("model"), raw.get("quantity")
    if not _filled(kind) or not _filled(model) or not isinstance(quantity, int) or isinstance(quantity, bool) or quantity < 1:
        problems.append(
            Text("order line {n} lacks kind, model or a quantity of at least 1", "订单第 {n} 行缺少类别、型号或不小于 1 的数量").fill(n=number)
        )
        return None
    firmware = raw.get("firmware") or []
    allowed = tuple(str(f).strip() for f in ([firmware] if isinstance(firmware, str) else firmware))
    try:
        capacity = parse_quantity(str(raw["capacity"]), "bytes").base.normalize() if raw.get("capacity") else None
        speed = parse_quantity(str(raw["speed"]), "rate").base * 8 if raw.get("speed") else None
    except BadQuantity as error:
        problems.append(Text("order line {n}: {why}", "订单第 {n} 行：{why}").fill(n=number, why=error))
        return None
    return Line(str(kind).strip(), str(model).strip(), quantity, allowed, capacity, speed)


def _packed(raw: Any, number: int, problems: list[Text]) -> Packed | None:
    raw = raw if isinstance(raw, Mapping) else {}
    named = ("kind", "model", "serial") if "serial" in raw or needs_serial(str(raw.get("kind")).strip()) else ("kind", "model")
    if not all(_filled(raw.get(key)) for key in named):
        problems.append(Text("packing list item {n} lacks kind, model or serial number", "装箱单第 {n} 项缺少类别、型号或序列号").fill(n=number))
        return None
    quantity = raw.get("quantity", 1)
    if not isinstance(quantity, int) or isinstance(quantity, bool) or quantity < 1 or (quantity > 1 and "serial" in raw):
        words = "packing list item {n}: one serial number is one piece, and a quantity is a whole number of at least 1"
        problems.append(Text(words, "装箱单第 {n} 项：一个序列号对应一件，数量为不小于 1 的整数").fill(n=number))
        return None
    host, firmware = raw.get("host"), raw.get("firmware")
    if not all(value is None or _filled(value) for value in (host, firmware)):
        problems.append(Text("packing list item {n} names a host or firmware that is no text", "装箱单第 {n} 项的主机或固件不是文字").fill(n=number))
    serial, firmware = str(raw.get("serial") or "").strip(), str(firmware).strip() if firmware else None
    return Packed(raw["kind"].strip(), raw["model"].strip(), serial, host if _filled(host) else None, firmware, quantity)


def _filled(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
