"""A manual step's form as it is printed: the entries of people in the words that the gate declared for its fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.reports.words import Words


def form_rows(form: dict[str, Any], words: Words) -> list[dict[str, str]]:
    """Return a form as rows of field and entry, then who entered it, then the photos with their hashes.

    `form` is {fields as declared, form: the entries, entered_by, photos: [{name, sha256}]}. A field that was not declared keeps its name.
    """
    fields = {str(field.get("name")): field for field in form.get("fields") or []}
    rows = [
        {"field": words.text(fields.get(name, {}).get("label")) or name, "entry": _entry(fields.get(last, {}), value, words)}
        for name, last, value in _leaves("", form.get("form") or {})
    ]
    if form.get("entered_by"):
        rows.append({"field": words("labels.entered_by"), "entry": str(form["entered_by"])})
    return rows + [{"field": str(photo.get("name", "")), "entry": str(photo.get("sha256", ""))} for photo in form.get("photos") or []]


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Walk to the entries: (the whole name, its last part, the entry). A person is one entry, a list of plain values too."""
    if isinstance(value, dict) and name and isinstance(value.get("name"), str):
        yield name, name, value["name"]
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for i, inner in enumerate(value, 1):
            yield from _leaves(f"{name} {i}", inner)
    else:
        yield name, name.rpartition(".")[2], value


def _entry(field: dict[str, Any], value: Any, words: Words) -> str:
    """Return an entry in words: the label of a choice, yes or no, else the text as it was entered."""
    if isinstance(value, list):
        return words.numbers(_entry(field, inner, words) for inner in value)
    if isinstance(value, bool):
        return words("yes" if value else "no")
    chosen = (choice for choice in field.get("choices") or [] if isinstance(choice, dict) and choice.get("value") == value)
    return next((words.text(choice.get("label")) for choice in chosen), str(value))
