"""Result files of benchmark clients as data: one JSON document, several one after another (JSON lines, appended runs), or CSV.

Stricter than `load_json`: a key that stands twice is a problem, `NaN` and `Infinity` stay the words that they are, and a number that
nobody could have measured (a thousand digits, 1e999) stays text, so that whoever needs the field says what it holds.
"""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from gates.canonical import has_broken_text
from gates.readers.common import Collector, clip, decode
from gates.system_words import said

_LONGEST_NUMBER = 60
_MOST_DIGITS = 40
_MOST_COLUMNS = 200
_SPACE = re.compile(r"[ \t\r\n]*")


class _DuplicateKeyError(ValueError):
    """One object names a key twice: which value counts nobody can tell."""


def documents(data: bytes, into: Collector) -> list[Any]:
    """Return the JSON values of a file in order. What follows the first unreadable place is left out, with a problem that names the place."""
    text = json_text(data, into)
    if text is None:
        return []
    found: list[Any] = []
    at = _skip(text, 0)
    broken = "\\ud" in text or "\\uD" in text
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
            if broken and has_broken_text(value, text):
                raise ValueError("it holds half of a surrogate pair, which is no text")
        except _DuplicateKeyError as error:
            into.trouble("duplicate_key", "{where}: {why}.", "{where}：{why}。", where=_place(text, at), why=said(error))
            return found
        except (ValueError, RecursionError) as error:
            into.trouble(
                "not_json", "{where}: this is not complete JSON: {why}.", "{where}：不是完整的 JSON：{why}。", where=_place(text, at), why=said(error)
            )
            return found
        found.append(value)
        at = _skip(text, end)
    return found


def json_text(data: bytes, into: Collector) -> str | None:
    """Return the text of a JSON file, or None with the problem why it is none: another encoding, or a mark before the first value."""
    text = decode(data, into)
    if text is None or not text.startswith("\ufeff"):
        return text
    into.trouble(
        "not_json",
        "The file begins with a byte order mark (UTF-8 with BOM), which JSON has none of: save it as UTF-8 without it.",
        "文件以字节顺序标记开头（带 BOM 的 UTF-8），JSON 不允许：请另存为不带 BOM 的 UTF-8。",
    )
    return None


def first_document(data: bytes) -> Any:
    """Return the first JSON value of a file, or None where there is none: enough to tell whose file it is."""
    text = data.decode("utf-8", "replace")
    try:
        return _DECODER.raw_decode(text, _skip(text, 0))[0]
    except (ValueError, RecursionError):
        return None


def table(data: bytes, into: Collector) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column name. Rows of another width, doubled column names and a cut last line are problems."""
    text = decode(data, into)
    if text is None:
        return []
    if not text.endswith("\n"):
        into.trouble("truncated", "The file ends within a line.", "文件末行不完整。")
        return []
    try:
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        into.trouble("not_csv", "The file is not readable as CSV: {why}.", "文件无法按 CSV 解析：{why}。", why=said(error))
        return []
    head = lines[0] if lines else []
    if len(set(head)) != len(head) or len(head) > _MOST_COLUMNS:
        into.trouble("duplicate_key", "A column name stands twice: {head}.", "列名重复：{head}。", head=", ".join(head[:20]))
        return []
    wrong = [number for number, line in enumerate(lines[1:], 2) if line and len(line) != len(head)]
    if wrong:
        into.trouble(
            "not_csv",
            "{n} lines have another number of columns than the head, the first is line {at}.",
            "有 {n} 行的列数与表头不符，首个为第 {at} 行。",
            n=len(wrong),
            at=wrong[0],
        )
        return []
    return [dict(zip(head, line, strict=True)) for line in lines[1:] if line]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _DuplicateKeyError(f"key {clip(twice, 60)!r} stands twice in one object")
    return out


def _number(text: str) -> Decimal | str:
    if len(text) > _LONGEST_NUMBER:
        return clip(text, 40)
    try:
        value = Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return text
    if value.is_zero():  # 0e999999 is a zero that takes a million digits to write
        return Decimal(0)
    return value if abs(value.adjusted()) < _MOST_DIGITS else text


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}"


_DECODER = json.JSONDecoder(parse_float=_number, parse_int=_number, parse_constant=str, object_pairs_hook=_once)
