"""The form of a manual step: read against the fields that the gate declares, photos recognised by what they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_
from gates.canonical import decimal_text
from gates.text import Text, seen

LARGEST_FILE = 20 * 1024 * 1024
MOST_FILES = 40
LONGEST_TEXT, LONGEST_LINE = 4000, 200
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpg"), (b"%PDF-", "pdf"))


def fields_of(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a manual step as every face shows them: {name, type, title, required, choices, ...}."""
    return [{"title": field.get("label") or field["name"], "required": True, **field} for field in params.get("form") or []]


def read_form(fields: Sequence[Mapping[str, Any]], form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries, each as its field declares it. Raises BadInput that names every wrong field.

    A field: {name, type, title, required, choices}; types: text, long_text, bool, choice, person, number. Persons must be distinct.
    """
    problems = [
        FieldProblem(f"/form/{key}", N_("There is no field {key} in this form."), {"key": key})
        for key in form
        if key not in {f["name"] for f in fields}
    ]
    entries: dict[str, Any] = {}
    for field in fields:
        name, value = field["name"], form.get(field["name"])
        if isinstance(value, str):
            value = value.strip()
        if value is None or (isinstance(value, str) and not seen(value)):
            if field.get("required", True):
                problems.append(FieldProblem(f"/form/{name}", N_("{title} is missing."), {"title": _title(field)}))
            continue
        read = _READERS.get(field["type"], _text)(field, value)
        if isinstance(read, FieldProblem):
            problems.append(read)
        else:
            entries[name] = read
    problems += _same_persons(fields, entries)
    if problems:
        raise BadInput("bad_form", N_("The form cannot be accepted. Fields that need attention: {count}."), problems, count=len(problems))
    return entries


def kind_of(data: bytes) -> str | None:
    """Return png, jpg, webp or pdf by the first bytes, never by a name; None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), None)


def check_file(name: str, data: bytes, pointer: str) -> str:
    """Return the kind of an uploaded file. Raises BadInput when it is too large or no picture and no PDF."""
    kind = kind_of(data)
    problem = None
    if len(data) > LARGEST_FILE:
        problem = FieldProblem(pointer, N_("{name} is larger than {limit} MiB."), {"name": name, "limit": LARGEST_FILE // 2**20})
    elif kind is None:
        problem = FieldProblem(pointer, N_("{name} is no PNG, JPEG, WebP or PDF, whatever its name says."), {"name": name})
    if problem or kind is None:
        raise BadInput("bad_file", N_("The file cannot be accepted."), [problem] if problem else [])
    return kind


def safe_name(name: str, kind: str, taken: set[str]) -> str:
    """Return a file name that is safe in a path and not taken: the person's words where they can be kept, the ending by the kind."""
    stem = re.sub(r"[^\w.-]+", "-", name.rsplit("/", 1)[-1].rsplit("\\", 1)[-1].rsplit(".", 1)[0]).strip(".-")[:60] or "photo"
    candidate, number = f"{stem}.{kind}", 2
    while candidate in taken:
        candidate, number = f"{stem}-{number}.{kind}", number + 1
    return candidate


def _title(field: Mapping[str, Any]) -> Text | str:
    title = field.get("title") or field.get("label") or field["name"]
    return Text.parse(title) if isinstance(title, dict) else str(title)


def _wrong(field: Mapping[str, Any], message: str, **params: Any) -> FieldProblem:
    return FieldProblem(f"/form/{field['name']}", message, {"title": _title(field), **params})


def _text(field: Mapping[str, Any], value: Any) -> str | FieldProblem:
    longest = LONGEST_TEXT if field["type"] == "long_text" else LONGEST_LINE
    if not isinstance(value, str) or len(value) > longest or any(c < " " and c not in "\r\n\t" for c in value):
        return _wrong(field, N_("{title} takes text of at most {most} characters."), most=longest)
    return value


def _bool(field: Mapping[str, Any], value: Any) -> bool | FieldProblem:
    return value if isinstance(value, bool) else _wrong(field, N_("{title} is answered by yes or no."))


def _number(field: Mapping[str, Any], value: Any) -> str | FieldProblem:
    try:
        return decimal_text(Decimal(str(value)))
    except (InvalidOperation, ValueError):
        return _wrong(field, N_("{title} takes a number."))


def _choice(field: Mapping[str, Any], value: Any) -> str | FieldProblem:
    allowed = [str(c["value"]) if isinstance(c, Mapping) and "value" in c else str(c) for c in field.get("choices") or ()]
    return str(value) if str(value) in allowed else _wrong(field, N_("{title} is one of: {allowed}."), allowed=", ".join(allowed))


_READERS = {"text": _text, "long_text": _text, "person": _text, "bool": _bool, "number": _number, "choice": _choice}


def _same_persons(fields: Sequence[Mapping[str, Any]], entries: Mapping[str, Any]) -> list[FieldProblem]:
    """Receivers are different people: two names that differ only in spaces, case or what nobody sees are one person."""
    named: set[str] = set()
    found = []
    for field in (f for f in fields if f["type"] == "person" and f["name"] in entries):
        person = seen(unicodedata.normalize("NFKC", str(entries[field["name"]]))).casefold()
        if person in named:
            found.append(_wrong(field, N_("{title} must be another person than the one named before.")))
        named.add(person)
    return found
