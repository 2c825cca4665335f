"""The drives over the soak, each by its serial number: the same ones, not too hot by their own word, not throttled, not worn, without new errors."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

from gates.g4 import declared_parts as declared
from gates.g4.part_series import Readings
from gates.model import CheckResult
from gates.readers.nvme_health import KELVIN_RANGE, ZERO_CELSIUS
from gates.readers.soak_health import Part
from gates.rules.findings import Finding, bad, good, unknown
from gates.text import Text

_KIND = "drives"
_THERMAL = {  # counters of the health log; drives of an older specification have the first two at most
    "warning_minutes": Text("min above warning", "分钟超过告警温度"),
    "critical_minutes": Text("min above critical", "分钟超过临界温度"),
    "throttle1_begun": Text("times of light throttling", "次轻度降速"),
    "throttle2_begun": Text("times of heavy throttling", "次重度降速"),
    "throttle1_s": Text("s of light throttling", "s 轻度降速"),
    "throttle2_s": Text("s of heavy throttling", "s 重度降速"),
}
_BITS = (  # critical warning (NVMe base specification, SMART / Health Information log)
    Text("spare below its threshold", "备用空间低于阈值"),
    Text("temperature", "温度"),
    Text("reliability degraded", "可靠性下降"),
    Text("read only", "只读"),
    Text("volatile backup failed", "掉电保护失效"),
    Text("persistent memory unreliable", "持久内存不可靠"),
)


def drive_checks(told: Readings) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the advisory checks of the drives; entries of what is not told where the soak's host has no drive that tells."""
    for one, ask, passed in (
        (declared.DRIVE_SAME, _same, Text("The same {n} drives from the first reading to the last.", "首末读取均为同样的 {n} 块硬盘。")),
        (declared.DRIVE_HEAT, _heat, Text("All {n} drives stayed below their own warning temperature.", "全部 {n} 块硬盘均低于自身告警温度。")),
        (declared.DRIVE_THROTTLE, _throttled, Text("No thermal counter of the {n} drives grew.", "{n} 块硬盘的过热计数均未增长。")),
        (declared.DRIVE_MEDIA, _media, Text("No media error was added on any of the {n} drives.", "{n} 块硬盘均未新增介质错误。")),
        (declared.DRIVE_WARNING, _warned, Text("No drive ({n} in all) gave a critical warning.", "全部 {n} 块硬盘均无严重告警。")),
        (declared.DRIVE_SPARE, _spare, Text("The available spare of all {n} drives stayed as it was.", "全部 {n} 块硬盘的可用备用空间未减少。")),
        (declared.DRIVE_WEAR, _worn, Text("All {n} drives wore no more than the plan allows.", "全部 {n} 块硬盘的磨损不超过计划限值。")),
    ):
        yield told.conclude(one, _KIND, partial(ask, told), passed)


def _same(told: Readings, part: Part) -> Finding:
    last, first_seen = len(told.health.stamps) - 1, min(part.rows)
    if first_seen:
        device = part.rows[first_seen].get("device")
        before = [p.name for p in told.health.parts[_KIND].values() if 0 in p.rows and p.rows[0].get("device") == device and last not in p.rows]
        words = {"s": part.name, "n": first_seen + 1, "b": ", ".join(before)}
        if before:
            return bad("{s} came at reading {n} in place of {b}", "{s} 在第 {n} 次读取时出现，取代 {b}", told.path, value=Decimal(1), **words)
        return bad("{s} came at reading {n}", "{s} 在第 {n} 次读取时出现", told.path, value=Decimal(1), **words)
    if last not in part.rows or len(part.rows) < told.soak.plan.g4.coverage_min * (last + 1):
        text = "{s} is named by {n} of {m} readings only", "{s} 仅出现在 {m} 次读取中的 {n} 次"
        return unknown(*text, told.path, s=part.name, n=len(part.rows), m=last + 1)
    return good("{s}", "{s}", told.path, value=Decimal(0), s=part.name)


def _heat(told: Readings, part: Part) -> Finding:
    heat, what = told.told(part, "temperature_k"), Text("its temperature", "温度")
    if heat is None:
        return told.silent(part, what)
    hottest = max(heat.values())
    if not all(KELVIN_RANGE[0] <= value <= KELVIN_RANGE[1] for value in heat.values()):
        return unknown("{s} tells temperatures that no drive has", "{s} 的温度读数不合理", told.path, s=part.name)
    thresholds = set(part.series("warning_k").values())
    if len(thresholds) != 1:
        return unknown("{s} declares no warning temperature", "{s} 未声明告警温度", told.path, s=part.name)
    left, critical = Decimal(min(thresholds) - hottest), max(part.series("critical_k").values(), default=0)
    words: dict[str, Any] = {
        "s": part.name,
        "v": hottest - int(ZERO_CELSIUS),
        "w": min(thresholds) - int(ZERO_CELSIUS),
        "c": critical - int(ZERO_CELSIUS),
    }
    if critical and hottest >= critical:
        text = "{s} reached {v} °C, its own critical temperature is {c} °C", "{s} 达到 {v} °C，自身临界温度为 {c} °C"
        return bad(*text, told.path, value=left, **words)
    text = "{s} reached {v} °C, its own warning temperature is {w} °C", "{s} 达到 {v} °C，自身告警温度为 {w} °C"
    return (good if left >= 1 else bad)(*text, told.path, value=left, **words)


def _throttled(told: Readings, part: Part) -> Finding:
    grown: dict[str, int] = {}
    for key, shown in _THERMAL.items():
        if not part.series(key) and key.startswith("throttle"):
            continue
        figures = told.told(part, key)
        if figures is None:
            return told.silent(part, Text("its thermal counters", "过热计数"))
        more = told.grown(figures)
        if more is None:
            return told.went_back(part, Text(f"the count “{shown.en}”", f"“{shown.zh}”计数"))
        grown[key] = more
    total = Decimal(sum(grown.values()))
    en = ", ".join(f"{more} {_THERMAL[key].en}" for key, more in grown.items() if more)
    zh = "、".join(f"{more} {_THERMAL[key].zh}" for key, more in grown.items() if more)
    return (bad if total else good)("{s}: {g}", "{s}：{g}", told.path, value=total, s=part.name, g=Text(en, zh))


def _media(told: Readings, part: Part) -> Finding:
    return _growth(told, part, "media_errors", Text("media errors", "介质错误数"), Decimal(0))


def _worn(told: Readings, part: Part) -> Finding:
    return _growth(told, part, "used_percent", Text("its percentage used", "寿命消耗百分比"), told.soak.plan.g4.drive_wear_max.base)


def _growth(told: Readings, part: Part, key: str, what: Text, most: Decimal) -> Finding:
    figures = told.told(part, key)
    if figures is None:
        return told.silent(part, what)
    more = told.grown(figures)
    if more is None:
        return told.went_back(part, what)
    last = len(told.health.stamps) - 1
    words: dict[str, Any] = {"s": part.name, "w": what, "a": figures[0], "b": figures[last]}
    return (good if more <= most else bad)("{s}: {w} went from {a} to {b}", "{s}：{w}由 {a} 增至 {b}", told.path, value=Decimal(more), **words)


def _warned(told: Readings, part: Part) -> Finding:
    figures = told.told(part, "critical_warning")
    if figures is None:
        return told.silent(part, Text("its critical warning", "严重告警"))
    seen = 0
    for value in figures.values():
        seen |= value
    named = [bit for n, bit in enumerate(_BITS) if seen >> n & 1] or [Text(f"0x{seen:02x}", f"0x{seen:02x}")]
    words = {"s": part.name, "b": Text(", ".join(b.en for b in named), "、".join(b.zh for b in named))}
    return (bad if seen else good)("{s} warned: {b}", "{s} 告警：{b}", told.path, value=Decimal(bool(seen)), **words)


def _spare(told: Readings, part: Part) -> Finding:
    figures, what = told.told(part, "spare_percent"), Text("its available spare", "可用备用空间")
    if figures is None:
        return told.silent(part, what)
    least, threshold = min(figures.values()), max(part.series("spare_least_percent").values(), default=-1)
    fall = Decimal(max(0, figures[0] - least))
    words: dict[str, Any] = {"s": part.name, "a": figures[0], "b": least, "t": threshold}
    if least <= threshold:
        text = "{s} has {b} % of spare left, its own threshold is {t} %", "{s} 备用空间仅余 {b} %，自身阈值为 {t} %"
        return bad(*text, told.path, value=max(fall, Decimal(1)), **words)
    return (bad if fall else good)("{s}: {a} % of spare fell to {b} %", "{s}：备用空间由 {a} % 降至 {b} %", told.path, value=fall, **words)
