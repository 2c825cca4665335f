"""Series of the Prometheus text format, and the quantities of an engine by the table of its own names (gates.engine_counters)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gates.engine_counters import (
    CACHED_BY_REQUEST,
    COMPUTED,
    FAILED_LOADS,
    FROM_GPU,
    FROM_HOST,
    FROM_TIER,
    LEDGER,
    OWN_HITS,
    PROMPT,
    SERIES,
    STORE_FAILURES,
    TIER_BY_REQUEST,
    TIER_HITS,
    family_of,
)
from gates.readers.strict import exact
from gates.text import Text, joined

_NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_STORE_FAILURES = re.compile("|".join(STORE_FAILURES))
_FAILED_LOADS = re.compile("|".join(FAILED_LOADS))


@lru_cache(maxsize=4096)
def parse_series(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return (name, labels) of a series such as `a_total{b="c"}`, or None when it is none."""
    match = _NAME.fullmatch(text.strip())
    if not match:
        return None
    name, inner = match.groups()
    labels, position = [], 0
    while inner and position < len(inner):
        label = _LABEL.match(inner, position)
        if not label:
            return None
        labels.append((label[1], re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label[2])))
        position = label.end()
    return name, tuple(labels)


def total(metrics: Any, name: str, **labels: str) -> Decimal | None:
    """Return the sum over the series of a name that carry these labels. None: no such series, or one that is no number."""
    if not isinstance(metrics, Mapping):
        return None
    values = []
    for series, raw in metrics.items():
        if not isinstance(series, str) or not is_of(series, name, labels):
            continue
        value = exact(raw)
        if value is None or value < 0:
            return None
        values.append(value)
    return sum(values, Decimal(0)) if values else None


def amount(metrics: Any, quantity: str, *, absent: Decimal | None = None) -> Decimal | None:
    """Return a quantity of gates.engine_counters as a page of counters tells it; None where a series of it is missing or no number.

    `absent` stands for a series that is not there, of an engine that brings one into being only when it counts.
    """
    if not isinstance(metrics, Mapping):
        return None
    parts = [total(metrics, name, **labels) if has(metrics, name, **labels) else absent for name, labels in series_of(family(metrics), quantity)]
    return sum((part for part in parts if part is not None), Decimal(0)) if parts and None not in parts else None


def growth(before: Any, after: Any, quantity: str, *, absent: Decimal | None = None) -> Decimal | None:
    """Return by how much a quantity grew. None where it is missing on either side, went down (the process was another one) or is gone behind."""
    low, high = amount(before, quantity, absent=absent), amount(after, quantity, absent=absent)
    if absent is not None and amount(after, quantity) is None and amount(before, quantity) is not None:
        return None
    return None if low is None or high is None or high < low else high - low


def has(metrics: Mapping[Any, Any], name: str, **labels: str) -> bool:
    """Return whether a page has a series of a name with these labels, whatever its value."""
    return any(isinstance(series, str) and is_of(series, name, labels) for series in metrics)


def is_of(series: str, name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a series has a name and carries these labels."""
    if not series.startswith(name):
        return False
    parsed = parse_series(series)
    return parsed is not None and parsed[0] == name and labels.items() <= dict(parsed[1]).items()


def family(metrics: Mapping[Any, Any]) -> str | None:
    """Return whose counters a page holds, by the names of its series."""
    return family_of(series for series in metrics if isinstance(series, str))


def series_of(engine: str | None, quantity: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return the series of a quantity, each as (name, labels); empty where the engine is unknown or does not tell it."""
    return SERIES.get(engine or "", {}).get(quantity, ())


def exposes(names: Iterable[str], quantity: str) -> bool:
    """Return whether an engine that exposes these names (engine.json) has any series of a quantity, with the ending _total or without."""
    known = set(names)
    return any(name in known or name.removesuffix("_total") in known for name, _ in series_of(family_of(known), quantity))


def called(names: Iterable[str], quantities: Iterable[str]) -> Text:
    """Return what the engine that exposes `names` calls the series of quantities, for a sentence; empty where it is nobody's that is known."""
    engine = family_of(tuple(names))
    return joined(Text(name, name) for name in dict.fromkeys(name for quantity in quantities for name, _ in series_of(engine, quantity)))


def failures_to_store(metrics: Any) -> dict[str, Decimal]:
    """Return the counters of failures to store by their series, as far as an endpoint exposes any; one that is no number is left out."""
    return _counters(metrics, _STORE_FAILURES)


def failures_to_load(metrics: Any) -> dict[str, Decimal]:
    """Return the counters of KV that was found and could not be loaded by their series, likewise; of engines that count it in loads."""
    return _counters(metrics, _FAILED_LOADS)


def _counters(metrics: Any, form: re.Pattern[str]) -> dict[str, Decimal]:
    rows = metrics.items() if isinstance(metrics, Mapping) else ()
    known = {str(series): exact(raw) for series, raw in rows if form.search(str(series).partition("{")[0])}
    return {series: value for series, value in known.items() if value is not None and value >= 0}


@dataclass(frozen=True)
class Sources:
    """Where the prompt tokens of one phase came from, by the engine's own counters."""

    total: Decimal
    computed: Decimal
    hbm: Decimal
    external: Decimal
    host: Decimal = Decimal(0)  # from the engine's own host memory


def sources(before: Any, after: Any, names: Collection[Any]) -> Sources | None:
    """Return the account of prompt tokens between two scrapes, or None when the engine's counters do not give a closed one.

    `names`: the names that this engine exposes, by its own engine.json. The ledger is the account where the engine has it; a part that
    does not exist yet is zero only while the parts that do exist add up to all prompt tokens. Where a second account is kept (SGLang), the two must
    agree. Only in an engine without a ledger do the older counters of own and external hits give the account: they count what was found, not
    what was loaded.
    """
    everything = growth(before, after, PROMPT)
    if everything is None:
        return None
    if exposes((str(name) for name in names), COMPUTED) or any(amount(page, part) is not None for page in (before, after) for part in LEDGER):
        parts = [_part(before, after, part) for part in (COMPUTED, FROM_GPU, FROM_HOST, FROM_TIER)]
        if any(p is None for p in parts):
            return None
        computed, hbm, host, external = (p or Decimal(0) for p in parts)
        closed = computed + hbm + host + external == everything and _agrees(before, after, hbm + host + external, external)
        return Sources(everything, computed, hbm, external, host) if closed else None
    old_hbm, old_external = growth(before, after, OWN_HITS), growth(before, after, TIER_HITS)
    if old_hbm is None or old_external is None or old_hbm + old_external > everything:
        return None
    return Sources(everything, everything - old_hbm - old_external, old_hbm, old_external)


def _part(before: Any, after: Any, part: str) -> Decimal | None:
    if not series_of(family(after), part):
        return Decimal(0)  # an engine that has no such place
    return growth(before, after, part, absent=Decimal(0))


def _agrees(before: Any, after: Any, cached: Decimal, external: Decimal) -> bool:
    """Return whether the account by requests, where the engine keeps one, tells the same of what was not computed and of what the tier gave."""
    for quantity, told in ((CACHED_BY_REQUEST, cached), (TIER_BY_REQUEST, external)):
        if series_of(family(after), quantity) and growth(before, after, quantity, absent=Decimal(0)) != told:
            return False
    return True
