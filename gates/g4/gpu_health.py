"""The accelerators over the soak: how near they came to their own slowdown temperature, and whether heat throttled them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from gates.g4 import declared_parts as declared
from gates.g4.part_series import Readings
from gates.model import CheckResult
from gates.readers.soak_health import Part
from gates.readers.strict import at
from gates.rules.estimates import beside, percent
from gates.rules.findings import Finding, bad, good, unknown
from gates.text import Text

_KIND, _HEAT, _SLOWDOWN, _RESIDENCIES, _STATUS = "gpus", "temperature_c", "slowdown_c", "throttle", "throttled"
_HOTTEST = 150  # degrees Celsius: a sensor that says more, or less than 1, tells another unit or nothing


def gpu_checks(told: Readings) -> Iterator[CheckResult | dict[str, Any]]:
    """Return the advisory checks of the accelerators; entries of what is not told where none of them tells."""
    gpus = {name: replace(part, name=f"GPU {name}") for name, part in told.health.parts.get(_KIND, {}).items()}
    counting = {name: part for name, part in gpus.items() if part.keys(_RESIDENCIES)}
    silent = {name: part for name, part in gpus.items() if name not in counting}
    for one, ask, parts, passed in (
        (declared.GPU_HEAT, _heat, gpus, Text("All {n} GPUs stayed below their own slowdown temperature.", "全部 {n} 块 GPU 均低于自身降频温度。")),
        (declared.GPU_THROTTLE, _throttled, counting, Text("Heat throttled none of the {n} GPUs.", "{n} 块 GPU 均未因过热降频。")),
        (declared.GPU_STATUS, _status, silent, Text("The {n} GPUs were not throttled beyond the limit.", "{n} 块 GPU 的降频占比未超限值。")),
    ):
        yield told.conclude(one, _KIND, partial(ask, told), passed, parts=parts)


def _heat(told: Readings, part: Part) -> Finding:
    """Hold each sensor against its own limit. A sensor without one is left out; a GPU with no such pair is not known."""
    nearest: Finding | None = None
    for sensor in part.keys(_SLOWDOWN):
        limits, heat = set(part.series(_SLOWDOWN, sensor).values()), told.told(part, _HEAT, sensor)
        words: dict[str, Any] = {"g": part.name, "k": sensor}
        if not part.series(_HEAT, sensor):
            continue
        if heat is None or len(limits) != 1:
            return told.silent(part, Text(f"the temperature of {sensor}", f" {sensor} 温度"))
        if not all(0 < value <= _HOTTEST for value in heat.values()):
            return unknown("{g} tells a temperature of {k} that no GPU has", "{g} 的 {k} 温度读数不合理", told.path, **words)
        left = Decimal(min(limits) - max(heat.values()))
        words |= {"v": max(heat.values()), "l": min(limits)}
        text = "{g} reached {v} °C at {k}, its own slowdown limit is {l} °C", "{g} 的 {k} 达到 {v} °C，自身降频阈值为 {l} °C"
        found = (good if left >= 1 else bad)(*text, told.path, value=left, **words)
        if nearest is None or nearest.value is None or left < nearest.value:
            nearest = found
    return nearest or unknown("{g} declares no slowdown temperature", "{g} 未声明降频温度", told.path, g=part.name)


def _throttled(told: Readings, part: Part) -> Finding:
    grown: dict[str, int] = {}
    for cause in part.keys(_RESIDENCIES):
        figures, what = told.told(part, _RESIDENCIES, cause), Text(f"the residency of {cause}", f" {cause} 累计")
        if figures is None:
            return told.silent(part, what)
        more = told.grown(figures, for_life=False)
        if more is None:
            return told.went_back(part, what)
        grown[cause] = more
    total = Decimal(sum(grown.values()))
    words = {"g": part.name, "c": ", ".join(f"{cause} +{more}" for cause, more in grown.items() if more)}
    return (bad if total else good)("{g}: {c}", "{g}：{c}", told.path, value=total, **words)


def _status(told: Readings, part: Part) -> Finding:
    said = [at(row, _STATUS) for row in part.rows.values()]
    limit, readings = told.soak.plan.g4.throttled_share_max, len(told.health.stamps)
    if not all(isinstance(one, bool) for one in said) or len(said) < told.soak.plan.g4.coverage_min * readings:
        return told.silent(part, Text("whether it is throttled", "是否降频"))
    share = Fraction(sum(said), len(said))
    words = {"g": part.name, "n": sum(said), "m": len(said), "v": percent(share, limit)}
    text = "{g} was throttled in {n} of {m} readings ({v})", "{g} 在 {m} 次读取中有 {n} 次处于降频（{v}）"
    return (good if share <= Fraction(limit) else bad)(*text, told.path, value=beside(share, limit, 6), **words)
