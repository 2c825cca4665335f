"""Ways to harm evidence as accidents and forgers do: removal of files, lines, rows, keys and list entries, doubling, NaN, null, other units."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from gates.bundle import Unreadable
from tests.bundles.evidence import Evidence
from tests.unit.gates.chinese import english_in
from tests.unit.gates.shared_reading import judged

GOOD, NOT_GOOD = ("pass", "conditional"), ("fail", "inconclusive", "invalid", "unreadable")
HOWS = ("remove", "empty", "truncate", "drop a line", "drop a row", "drop a key", "double a line", "double a row", "reverse", "null", "nan", "unit")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?(?:[eE][+-]?\d{1,2})?")  # counters of an engine come as text
Path = tuple[str, ...]  # of keys from the top of a JSON value; `*` is any place of a list
# ns/us/ms/s, KiB/KB and bits/bytes: what a tool of another version, or a hand, may have meant.
FACTORS = (1000, 1024, 8, 10**6, 10**9)


def verdict(evidence: Evidence) -> str:
    """Return the verdict of a bundle, or `unreadable`."""
    try:
        return str(judged(evidence)["verdict"])
    except Unreadable:
        return "unreadable"


def read_verdict(evidence: Evidence) -> str:
    """Return the verdict of a bundle, whose every Chinese sentence is Chinese."""
    document = judged(evidence)
    assert english_in(document) == {}
    return str(document["verdict"])


def copied_from(evidence: Evidence) -> Evidence:
    """Return evidence with files of its own; bytes and the plan never change."""
    return Evidence(evidence.gate, evidence.plan, dict(evidence.files), dict(evidence.attempt), evidence.simulated)


def damaged(evidence: Evidence, path: str, how: str, where: float, factor: int = 1000, *, up: bool = False) -> Evidence:
    """Return a copy with one file damaged; manifest and pack.json are made to fit, as a forger would."""
    copied = copied_from(evidence)
    data = copied.files[path]
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    row = int(where * len(lines))
    if how == "remove":
        copied.drop(path)
    elif how == "empty":
        copied.files[path] = b""
    elif how == "truncate":
        copied.files[path] = data[: int(len(data) * where)]
    elif how == "drop a line":
        copied.files[path] = "".join(lines[:row] + lines[row + 1 :]).encode()
    elif how in ("drop a row", "double a row"):
        kept = lines[: row + (how == "double a row")]
        copied.files[path] = _renumbered(kept + lines[row + (how == "drop a row") :]) if path.endswith(".jsonl") else data
        _recount(copied, path)
    elif how == "drop a key":
        names = key_paths(data)
        copied.files[path] = without(data, names[int(where * len(names))], None if up else int(where * 10**6)) if names else data
    elif how == "double a line":
        copied.files[path] = "".join(lines[: row + 1] + lines[row:]).encode()
    elif how == "reverse":
        copied.files[path] = "".join(reversed(lines)).encode()
    elif how in ("null", "nan", "unit"):
        copied.files[path] = _edited(data, how, where, factor, up=up)
    return _packed(copied, path)


def in_another_unit(evidence: Evidence, path: str, field: str, factor: int, *, up: bool) -> Evidence:
    """Return a copy with one numeric field of a file in another unit, in every row; pack and manifest are made to fit."""
    copied = copied_from(evidence)
    rows = _parsed(copied.files[path]) or []
    for row in rows:
        _apply(row, field, "unit", factor, up=up)
    copied.files[path] = _written(copied.files[path], rows)
    return _packed(copied, path)


def fields(data: bytes) -> list[str]:
    """Return the names of all numeric fields of a JSON file or journal; places of lists count as one. A text that is no JSON has none."""
    return sorted({name for row in _parsed(data) or [] for name in _names(row)})


def _packed(copied: Evidence, path: str) -> Evidence:
    parts = path.split("/")
    if len(parts) == 4 and path in copied.files and parts[3] != "pack.json" and copied.path(parts[1], "pack.json") in copied.files:
        copied.repack(parts[1])
    return copied


def key_paths(data: bytes) -> list[Path]:
    """Return the paths of all keys and list entries of a JSON file or journal, in order. A text that is no JSON has none."""
    return sorted({path for row in _parsed(data) or [] for path in _keys(row, ())})


def without(data: bytes, path: Path, nth: int | None = None) -> bytes:
    """Return a file without a key (the first entry of a list at `*`): in every row where it stands, or in the nth of those alone."""
    rows = _parsed(data) or []
    having = [row for row in rows if path in set(_keys(row, ()))]
    for row in having if nth is None else having[nth % len(having) :][:1]:
        _take(row, path)
    return _written(data, rows)


def _parsed(data: bytes) -> list[Any] | None:
    text = data.decode("utf-8", "replace")
    whole = _json(text)
    rows = [whole] if whole is not None else [_json(line) for line in text.splitlines()]
    return None if not rows or any(row is None for row in rows) else rows


def _keys(value: Any, path: Path) -> Iterator[Path]:
    for key, inner in value.items() if isinstance(value, dict) else [("*", v) for v in value] if isinstance(value, list) else ():
        yield (*path, key)
        yield from _keys(inner, (*path, key))


def _take(value: Any, path: Path) -> None:
    """Take a key out of every place where its path leads; of a list, the first entry that has it is taken or entered."""
    head, rest = path[0], path[1:]
    if head == "*" and isinstance(value, list):
        if not rest:
            value.pop(0)
        for inner in value if rest else ():
            _take(inner, rest)
    elif isinstance(value, dict) and head in value:
        if not rest:
            del value[head]
        else:
            _take(value[head], rest)


def _renumbered(lines: list[str]) -> bytes:
    rows = [_json(line) for line in lines]
    return "".join(json.dumps({**row, "seq": n}, separators=(",", ":")) + "\n" for n, row in enumerate(rows) if isinstance(row, dict)).encode()


def _recount(evidence: Evidence, path: str) -> None:
    """Let exit.json tell of as many records as there are."""
    end = path.replace("records.jsonl", "exit.json")
    if end != path and end in evidence.files:
        told = json.loads(evidence.files[end])
        told.update(records=(n := len(evidence.files[path].splitlines())), last_seq=n - 1)
        evidence.files[end] = json.dumps(told).encode()


def _edited(data: bytes, how: str, where: float, factor: int, *, up: bool) -> bytes:
    """Change one field: in every row of a journal for another unit, in one row for null and NaN. Text that is no JSON stays as it is."""
    rows, names = _parsed(data) or [], fields(data)
    if not names:
        return data
    name = names[int(where * len(names))]
    touched = rows if how == "unit" else rows[int(where * len(rows)) :][:1]
    for row in touched:
        _apply(row, name, how, factor, up=up)
    return _written(data, rows)


def _written(data: bytes, rows: list[Any]) -> bytes:
    """Return rows in the form that they had in a file: a document, or a journal."""
    if _json(data.decode("utf-8", "replace")) is not None:
        return json.dumps(rows[0], ensure_ascii=False).encode()
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows).encode()


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _names(value: Any, path: str = "") -> Iterator[str]:
    """Yield the names of all numeric fields below a value; list places count as one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _names(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _names(inner, f"{path}/*")
    elif _is_number(value):
        yield path


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scaled(value: Any, factor: int, *, up: bool) -> Any:
    if isinstance(value, str):
        return format(Decimal(value) * factor if up else Decimal(value) / factor, "f")
    return value * factor if up else (value // factor if isinstance(value, int) and value % factor == 0 else value / factor)


def _apply(value: Any, name: str, how: str, factor: int, *, up: bool, path: str = "") -> None:
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(places):
        here = f"{path}/{key}" if isinstance(value, dict) else f"{path}/*"
        if here == name and _is_number(inner):
            if how == "unit":
                value[key] = _scaled(inner, factor, up=up)
            else:
                value[key] = None if how == "null" else "NaN" if isinstance(inner, str) else float("nan")
        else:
            _apply(inner, name, how, factor, up=up, path=here)
