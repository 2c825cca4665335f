"""The sealed plan as rows: every leaf of the gate's section, in words, with the digits it was agreed with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.reports import format as f
from app.reports.words import Words

_NOT_PERCENT = ("_ratio", "guard_r", "time_scale")


def threshold_rows(plan: dict[str, Any], gate: str, words: Words) -> list[dict[str, str]]:
    """Return the thresholds of a gate as sealed: {source, title, limit, scope}.

    They come in the order of the catalogue, since a sealed plan is sorted by its keys; a field without words shows its path, last.
    """
    sections = [gate.lower()] + (["validity"] if gate in ("G3", "G4") else [])
    rows = [_row(path, value, words) for name in sections for path, value in _leaves(name, plan.get(name) or {})]
    return sorted(rows, key=lambda row: words.place("thresholds", row["source"]))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Walk to the leaves; a limit with its tiers is one leaf."""
    if isinstance(value, dict) and value and "tiers" not in value and not all(str(key).isdigit() for key in value):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    else:
        yield path, value


def _row(path: str, value: Any, words: Words) -> dict[str, str]:
    scope = ""
    if isinstance(value, dict) and "tiers" in value:
        scope = words.numbers(value["tiers"])
        if "limit" in value:
            text = leaf_text(path, value["limit"], words)
        else:
            text = f"{f.limit_percent(value.get('low'), sign=True)} .. {f.limit_percent(value.get('high'), sign=True)}"
            text += f" ({words.of('values', value.get('above'))})" if words.language == "en" else f"（{words.of('values', value.get('above'))}）"
    else:
        text = leaf_text(path, value, words)
    return {"source": path, "title": words.of("thresholds", path), "limit": text, "scope": scope}


def leaf_text(path: str, value: Any, words: Words) -> str:
    """Format one value of a plan: ratios as percent, quantities with their unit as written, words in the language."""
    if value is None:
        return words("not_agreed")
    if isinstance(value, bool):
        return words("yes" if value else "no")
    if isinstance(value, dict):
        return words.numbers(f"c = {tier}: {leaf_text(path, inner, words)}" for tier, inner in value.items())
    if isinstance(value, list):
        if path.endswith("device_bytes_ratio"):
            return " .. ".join(f.exact(v) for v in value)
        return words.numbers(leaf_text(path, v, words) for v in value) or words("empty")
    if isinstance(value, int):
        return str(value)
    if f.number(value) is not None:
        return f.exact(value) if any(part in path for part in _NOT_PERCENT) else f.limit_percent(value)
    return words.of("values", value)
