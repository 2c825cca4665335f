"""The sealed plan as rows: every leaf of a section, in words, with the digits it was agreed with.

The rows are read off the plan itself, so that nothing that is sealed can be missing: a new field is a row as soon as it stands in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.reports import format as f
from app.reports.words import Words

_NOT_PERCENT = ("_ratio", "guard_r", "time_scale")
_AS_WRITTEN = ("platform", "not_tested")  # names and reasons that people wrote: never a number or a word of ours
_GATES = ("G1", "G2", "G3", "G4")


def threshold_rows(plan: dict[str, Any], gate: str, words: Words) -> list[dict[str, str]]:
    """Return the thresholds of a gate as sealed: {source, title, limit, scope}.

    They come in the order of the catalogue, since a sealed plan is sorted by its keys; a field without words shows its path, last.
    """
    return section_rows(plan, [gate.lower()] + (["validity"] if gate in ("G3", "G4") else []), words)


def section_rows(plan: dict[str, Any], sections: list[str], words: Words) -> list[dict[str, str]]:
    """Return every leaf of some sections of a plan as rows, in the same shape and order."""
    rows = [_row(path, value, words) for name in sections for path, value in _leaves(name, plan.get(name))]
    return sorted(rows, key=lambda row: words.place("thresholds", row["source"]))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Walk to the leaves; a limit with its tiers is one leaf, and so is a table by tier or by gate."""
    limit = isinstance(value, dict) and "tiers" in value and ("limit" in value or "low" in value)
    if isinstance(value, dict) and value and not limit and not all(str(key).isdigit() or key in _GATES for key in value):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner)
    else:
        yield path, value


def _row(path: str, value: Any, words: Words) -> dict[str, str]:
    scope = ""
    if isinstance(value, dict) and "tiers" in value and ("limit" in value or "low" in value):
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
        return words.of("absent", path, words("not_agreed"))
    if isinstance(value, bool):
        return words("yes" if value else "no")
    if isinstance(value, dict):
        by_tier = all(str(key).isdigit() for key in value)
        value = dict(sorted(value.items(), key=lambda pair: int(pair[0]))) if by_tier else value  # canonical JSON sorts them as text
        return words.numbers(f"{'c = ' if by_tier else ''}{key}: {leaf_text(path, inner, words)}" for key, inner in value.items()) or words("empty")
    if isinstance(value, list):
        if path.endswith("device_bytes_ratio"):
            return " .. ".join(f.exact(v) for v in value)
        joined = "；" if words.language == "zh-CN" else "; "
        if any(isinstance(v, dict) for v in value):
            return joined.join(leaf_text(path, v, words) for v in value)
        return words.numbers(leaf_text(path, v, words) for v in value) or words("empty")
    if isinstance(value, int):
        return str(value)
    if path.partition(".")[0] in _AS_WRITTEN:
        return str(value)
    if f.number(value) is not None:
        return f.exact(value) if any(part in path for part in _NOT_PERCENT) else f.limit_percent(value)
    return words.of("values", value)
