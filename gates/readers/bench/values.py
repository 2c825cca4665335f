"""Single values out of result files: numbers that cannot be negative, texts that say something, lists of one a request, and medians."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from gates.readers.common import Collector, available, clip, exact


def take(holder: Any, key: str, found: Collector, *, scale: int = 1, needed: bool = True) -> Decimal | None:
    """Return a number that cannot be negative, times a whole scale, or None: with a problem where it is needed or is no number."""
    raw = holder.get(key) if isinstance(holder, dict) else None
    value = exact(raw)
    if value is not None and value >= 0:
        return value * scale
    if value is not None:
        found.trouble(
            "impossible_value",
            "Field {key} is {raw}: a measured value cannot be negative.",
            "字段 {key} 为 {raw}：测量值不可能为负。",
            key=key,
            raw=raw,
        )
    elif needed or raw is not None:
        found.absent(key, raw)
    return None


def word(holder: Any, key: str) -> str | None:
    """Return a text that says something, on one line and clipped, or None."""
    raw = holder.get(key) if isinstance(holder, dict) else None
    return clip(raw, 200) if isinstance(raw, str) and available(raw) else None


def column(holder: Any, key: str, found: Collector, *, scale: int = 1) -> list[Decimal | None] | None:
    """Return a list of numbers that cannot be negative, one a request; other entries are None, with one problem. None where there is no list."""
    raw = holder.get(key) if isinstance(holder, dict) else None
    if raw is None:
        return None
    if not isinstance(raw, list):
        found.absent(key, raw)
        return None
    values = [exact(item) for item in raw]
    out = [None if v is None or v < 0 else v * scale for v in values]
    bad = next((item for item, v in zip(raw, out, strict=True) if v is None), None)
    if None in out:
        found.trouble(
            "not_a_number",
            "List {key} holds {n} entries that cannot be used, e.g. {raw}.",
            "列表 {key} 中有 {n} 项无法使用，例如 {raw}。",
            key=key,
            n=out.count(None),
            raw=bad,
        )
    return out


def median(values: Sequence[Decimal]) -> Decimal:
    """Return the median: the middle value, or the mean of the middle two."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def most_in_flight(spans: list[tuple[Decimal, Decimal]]) -> Decimal | None:
    """Return the most requests that were in flight at one time; one that ends when another starts has ended."""
    edges = sorted([(a, 1) for a, _ in spans] + [(b, -1) for _, b in spans], key=lambda edge: (edge[0], edge[1]))
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return Decimal(most) if most else None
