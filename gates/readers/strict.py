"""Strict JSON of our own evidence files: exact numbers, no NaN, no key twice, no line that is half a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gates.bundle import Bundle, Unreadable
from gates.canonical import has_broken_text, writable
from gates.model import Problem
from gates.system_words import said
from gates.text import Text


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


_LARGEST = 2**63


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return out


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_once)


def decode(text: str) -> Any:
    """Return the value of one JSON text, read strictly. Raises ValueError that says what is wrong, RecursionError for a bottomless one."""
    value = _DECODER.decode(text)
    if has_broken_text(value, text):
        raise ValueError("it holds half of a surrogate pair, which is no text")
    return value


@dataclass
class Reader:
    """Reads the files of one directory of evidence, and gathers what is wrong with them."""

    bundle: Bundle
    folder: str  # evidence/<step>/<host>
    problems: list[Problem] = field(default_factory=list)

    def path(self, name: str) -> str:
        """Return the path of a file of this directory."""
        return f"{self.folder}/{name}"

    def trouble(self, code: str, name: str, en: str, zh: str) -> None:
        """Record what is wrong with one file."""
        path = self.path(name)
        self.problems.append(Problem(code, Text(f"{path}: {en}", f"{path}：{zh}"), path))

    def unreadable(self, name: str, error: Unreadable) -> None:
        """Record that a file is not what the manifest says."""
        self.problems.append(Problem("unreadable", error.text, self.path(name)))

    def raw(self, name: str) -> str | None:
        """Return a file as text, or None after recording that it is missing, changed or not UTF-8."""
        if not self.bundle.has(self.path(name)):
            self.trouble("missing", name, "this file is missing.", "缺少此文件。")
            return None
        try:
            return self.bundle.bytes(self.path(name)).decode("utf-8")
        except Unreadable as error:
            self.unreadable(name, error)
        except UnicodeDecodeError:
            self.trouble("encoding", name, "is not UTF-8 text.", "不是 UTF-8 文本。")
        return None

    def document(self, name: str) -> dict[str, Any]:
        """Return a JSON object, or an empty one after recording a problem."""
        text = self.raw(name)
        if text is None:
            return {}
        try:
            data = decode(text)
        except (ValueError, RecursionError) as error:
            self.trouble("json", name, f"is not readable as JSON: {said(error).en}.", f"无法按 JSON 解析：{said(error).zh}。")
            return {}
        if not isinstance(data, dict):
            self.trouble("json", name, "is not a JSON object.", "不是 JSON 对象。")
            return {}
        return data

    def journal(self, name: str, *, numbered: bool = True) -> list[dict[str, Any]]:
        """Return the lines of a journal. A broken line, and a `seq` that does not count 0, 1, 2, ..., are problems."""
        text = self.raw(name)
        if text is None:
            return []
        lines = text.split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        elif lines:
            self.trouble("truncated", name, "ends within a line.", "末行不完整。")
        rows: list[dict[str, Any]] = []
        for number, line in enumerate(lines, 1):
            try:
                row = decode(line)
            except (ValueError, RecursionError) as error:
                what = said(error)
                self.trouble("json", name, f"line {number} is not readable as JSON: {what.en}.", f"第 {number} 行无法按 JSON 解析：{what.zh}。")
                continue
            if not isinstance(row, dict):
                self.trouble("json", name, f"line {number} is not a JSON object.", f"第 {number} 行不是 JSON 对象。")
                continue
            rows.append(row)
        if numbered:
            self._count(name, rows)
        return rows

    def _count(self, name: str, rows: list[dict[str, Any]]) -> None:
        for expected, row in enumerate(rows):
            if row.get("seq") != expected or isinstance(row.get("seq"), bool):
                self.trouble(
                    "sequence",
                    name,
                    f"line {expected + 1} has seq {row.get('seq')!r} where {expected} must stand: a line was lost, doubled or moved.",
                    f"第 {expected + 1} 行 seq 为 {row.get('seq')!r}，应为 {expected}：有记录丢失、重复或错位。",
                )
                return


def whole(value: Any) -> int | None:
    """Return a whole number of at most 63 bits, or None for anything else. A bool is no number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST else None


def count(value: Any) -> int | None:
    """Return a whole number that is not negative, or None."""
    number = whole(value)
    return number if number is not None and number >= 0 else None


def exact(value: Any) -> Decimal | None:
    """Return a finite exact number from a JSON number or a decimal string, or None."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        return None
    try:
        number = Decimal(value)
    except ArithmeticError:
        return None
    return number if writable(number) else None


def at(data: Any, *keys: str) -> Any:
    """Return a nested value, or None where any key is absent."""
    for key in keys:
        if not isinstance(data, Mapping):
            return None
        data = data.get(key)
    return data
