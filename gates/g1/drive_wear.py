"""What a drive has behind it when it arrives: bytes written, power lost without notice, heat. Two readings: the survey, and behind the raw reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gates.declared import Declared, by_agreement
from gates.g1.declared_arrival import HEAT, OVERHEATED, UNSAFE, WRITTEN, hottest
from gates.g1.error_log import named
from gates.g1.inventory import Inventory, Item
from gates.g1.links import Packs
from gates.g1.order import Packed
from gates.g1.pack import Answer
from gates.model import CheckResult
from gates.readers.nvme_health import DATA_UNIT, ZERO_CELSIUS
from gates.rules.estimates import beside
from gates.rules.findings import Finding, bad, conclude, doubtful, good, unknown
from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan

SMART = "nvme-smart-log"
Ask = Callable[["Plan", str, Item, list[Answer]], Finding]


def wear_checks(
    plan: Plan, drives: tuple[Packed, ...], inventory: Inventory, survey: Packs, storage: Packs
) -> Iterator[CheckResult | dict[str, Any]]:
    """Return what the delivered drives were used for, one check a question; without any SMART log they are not asked."""
    brought = any(pack.names(SMART) for pack in (*survey.values(), *storage.values()) if not pack.trouble)
    for declared, ask, passed in (
        (WRITTEN, _written, Text("No drive was written more than a new one is ({n} in all).", "全部 {n} 块硬盘的写入量均不超过新盘水平。")),
        (UNSAFE, _unsafe, Text("No drive lost its power too often ({n} in all).", "全部 {n} 块硬盘的非正常断电次数均在限值内。")),
        (HEAT, _heat, Text("Every drive stays cool enough, also after raw reads ({n} in all).", "全部 {n} 块硬盘温度在限值内，裸读之后亦然。")),
        (OVERHEATED, _overheated, Text("No drive has ever been too hot ({n} in all).", "全部 {n} 块硬盘从未过热。")),
    ):
        findings = [_of_drive(plan, declared, ask, item, inventory, survey, storage) for item in drives]
        values = [f.value for f in findings if f.value is not None]
        worst, bound = max(values, default=None), declared.limit(plan).high
        margin = bound - worst if worst is not None and isinstance(bound, Decimal) else None
        yield by_agreement(declared, plan, conclude(declared.blank(plan), findings, passed=passed, value=worst, margin=margin), brought=brought)


def _of_drive(plan: Plan, declared: Declared, ask: Ask, item: Packed, inventory: Inventory, survey: Packs, storage: Packs) -> Finding:
    seen = inventory.find("drive", item.serial)
    if seen is None:
        return unknown("{s} was not seen", "未见到 {s}", s=item.serial)
    if declared is WRITTEN:
        answers = [survey[seen.host].answer(f"{tool}.{seen.name}") for tool in (SMART, "smartctl")]
    else:
        later = storage.get(seen.host)
        if later is None or later.trouble:
            return unknown("{s}: it was not read again after the raw reads", "{s}：裸读之后未再次读取", s=item.serial)
        # A drive may bear another name in the later step: its serial number there says which.
        answers = [survey[seen.host].answer(f"{SMART}.{seen.name}"), later.answer(f"{SMART}.{named(later, item.serial) or seen.name}")]
    gap = next((answer for answer in answers if answer.problems), None)
    return doubtful(item.serial, gap.problems, gap.path) if gap is not None else ask(plan, item.serial, seen, answers)


def _told(answers: list[Answer], quantity: str) -> list[Decimal] | None:
    """Return a quantity of each answer, or None where one of them does not tell it."""
    values = [o.value for answer in answers if (o := answer.one(quantity)) is not None and isinstance(o.value, Decimal)]
    return values if len(values) == len(answers) else None


def _silent(serial: str, what: Text, answers: list[Answer]) -> Finding:
    return unknown("{s}: {w} is not told by both readings", "{s}：两次读数未均报告{w}", *(a.path for a in answers), s=serial, w=what)


def _written(plan: Plan, serial: str, seen: Item, answers: list[Answer]) -> Finding:
    """Hold the larger of both tools' figures against the capacity. They may differ by one unit of the log (512,000 B): it is rounded up."""
    told = _told(answers, "health.bytes_written")
    if told is None or not seen.capacity:
        return _silent(serial, Text("what was written, or the capacity,", "写入量或容量"), answers)
    paths = [answer.path for answer in answers]
    if abs(told[0] - told[1]) > DATA_UNIT * 1000:  # a host that is up may write a little between two commands; an array's log does
        words: dict[str, Any] = {"s": serial, "a": f"{told[0]:f}", "b": f"{told[1]:f}"}
        return unknown("{s}: the tools disagree on what was written ({a} and {b} B)", "{s}：两种工具的写入量不一致（{a} 与 {b} B）", *paths, **words)
    share, most = Fraction(max(told)) / Fraction(seen.capacity), plan.g1.drive.writes_max
    value = beside(share, most, 4)
    words = {"s": serial, "v": f"{value.normalize():f}", "b": f"{max(told):f}", "l": f"{most:f}"}
    text = "{s}: {b} B written, {v} times its capacity, at most {l}", "{s}：已写入 {b} B，为容量的 {v} 倍，限 {l} 倍"
    return (good if share <= Fraction(most) else bad)(*text, *paths, value=value, **words)


def _unsafe(plan: Plan, serial: str, _: Item, answers: list[Answer]) -> Finding:
    told = _told(answers, "health.unsafe_shutdowns")
    if told is None:
        return _silent(serial, Text("how often power was lost", "非正常断电次数"), answers)
    words: dict[str, Any] = {"s": serial, "v": f"{max(told):f}", "l": plan.g1.drive.unsafe_shutdowns_max}
    text = "{s}: {v} unsafe shutdowns, at most {l}", "{s}：非正常断电 {v} 次，限 {l} 次"
    met = max(told) <= plan.g1.drive.unsafe_shutdowns_max
    return (good if met else bad)(*text, *(a.path for a in answers), value=max(told), **words)


def _heat(plan: Plan, serial: str, _: Item, answers: list[Answer]) -> Finding:
    """Compare as the tools convert: the log counts whole kelvin, and 273 of them are 0 degrees Celsius."""
    told = _told(answers, "health.temperature")
    if told is None:
        return _silent(serial, Text("the temperature", "温度"), answers)
    celsius, most = max(told) - ZERO_CELSIUS, hottest(plan)
    words = {"s": serial, "v": f"{celsius:f}", "l": f"{most:f}"}
    text = "{s}: {v} °C, at most {l} °C", "{s}：{v} °C，限 {l} °C"
    return (good if celsius <= most else bad)(*text, *(a.path for a in answers), value=celsius, **words)


def _overheated(_: Plan, serial: str, __: Item, answers: list[Answer]) -> Finding:
    told = [_told(answers, f"health.{level}_temperature_time") for level in ("warning", "critical")]
    if None in told:
        return _silent(serial, Text("for how long it was too hot", "过热时间"), answers)
    worst = max(value for values in told if values is not None for value in values)
    words = {"s": serial, "v": f"{worst:f}"}
    return (bad if worst else good)("{s}: {v} s too hot", "{s}：过热 {v} s", *(a.path for a in answers), value=worst, **words)
