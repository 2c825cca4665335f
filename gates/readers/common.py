"""What every reader needs: strict text, strict JSON with exact numbers, and problems that are sentences.

A reader never raises on bad input. It returns what it could read for certain, and a named problem for everything else;
a value that is missing, `N/A`, not a number, negative where that is impossible, or in an unknown unit gives no observation.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from gates.canonical import has_broken_text
from gates.model import Observation, Problem, Reading
from gates.readers.plausible import doubt
from gates.system_words import said
from gates.text import Text

NOT_AVAILABLE = {
    "",
    "-",
    "—",
    "无",
    "没有",
    "n/a",
    "na",
    "not available",
    "not supported",
    "unknown",
    "none",
    "not specified",
    "to be filled by o.e.m.",
}
FILE = Text("file", "文件")  # where something stands that has no labels
_DIGITS = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")


class Collector:
    """Gathers the observations and problems of one file."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []
        self.problems: list[Problem] = []
        self._told: set[tuple[str, tuple[tuple[str, str], ...]]] = set()

    def see(self, quantity: str, value: Decimal | str, unit: str, **labels: str) -> None:
        """Add one observation; a value that stands for "not known", or that no such thing can have, becomes a problem instead."""
        self.observe(quantity, value, unit, labels)

    def observe(self, quantity: str, value: Decimal | str, unit: str, labels: dict[str, str]) -> None:
        """Add one observation as `see` does, with labels of any name. A fact that stands twice is a problem, the same value or not."""
        key = (quantity, tuple(sorted(labels.items())))
        if key in self._told:
            where = " ".join(labels.values()) or FILE
            self.trouble("duplicate", "{what} stands twice ({where}).", "{what} 重复出现（{where}）。", what=quantity, where=where)
        self._told.add(key)
        doubtful = doubt(quantity, value, unit)
        if doubtful is None:
            self.observations.append(Observation(quantity, value, unit, labels))
        else:
            code, sentence = doubtful
            self.trouble(code, sentence.en, sentence.zh, quantity=quantity, value=value, unit=unit, where=" ".join(labels.values()) or FILE)

    def trouble(self, code: str, en: str, zh: str, **values: Any) -> None:
        """Add one problem; the values are put into both sentences, shortened so that no file can flood a report."""
        short = {key: Text(clip(v.en), clip(v.zh)) if isinstance(v, Text) else clip(str(v)) for key, v in values.items()}
        self.problems.append(Problem(code, Text(en, zh).fill(**short)))

    def number(self, holder: Any, key: str, quantity: str, unit: str, /, **labels: str) -> Decimal | None:
        """Read a count that cannot be negative from `holder[key]` and return it; else add a problem and return None."""
        return self.scaled(holder, key, quantity, unit, 1, **labels)

    def scaled(self, holder: Any, key: str, quantity: str, unit: str, scale: int, /, **labels: str) -> Decimal | None:
        """Read a number as `number` does, times a whole scale (e.g. bytes of a data unit)."""
        raw = holder.get(key) if isinstance(holder, dict) else None
        value = exact(raw)
        if value is None:
            self.absent(key, raw, **labels)
            return None
        if value < 0:
            self.trouble(
                "impossible_value",
                "Field {key} is {raw}: a measured value cannot be negative.",
                "字段 {key} 为 {raw}：测量值不可能为负。",
                key=key,
                raw=raw,
            )
            return None
        self.see(quantity, value * scale, unit, **labels)
        return value * scale

    def text(self, holder: Any, key: str, quantity: str, **labels: str) -> str | None:
        """Read a non-empty text from `holder[key]`, without the padding of the tool; else add a problem and return None."""
        raw = holder.get(key) if isinstance(holder, dict) else None
        if not isinstance(raw, str) or not available(raw):
            self.absent(key, raw, **labels)
            return None
        value = raw.strip()
        self.see(quantity, value, "text", **labels)
        return value

    def absent(self, key: str, raw: Any, **labels: str) -> None:
        """Add the problem of a field that is missing, not available, or not of the kind that it must be."""
        where = " ".join(labels.values())
        if raw is None:
            self.trouble("missing_field", "Field {key} is missing ({where}).", "缺少字段 {key}（{where}）。", key=key, where=where or FILE)
        elif isinstance(raw, str) and not available(raw):
            self.trouble(
                "not_available",
                "Field {key} says {raw} ({where}).",
                "字段 {key} 显示为 {raw}（{where}）。",
                key=key,
                raw=raw or "''",
                where=where or FILE,
            )
        else:
            self.trouble(
                "not_a_number",
                "Field {key} holds {raw}, which cannot be used ({where}).",
                "字段 {key} 的内容 {raw} 无法使用（{where}）。",
                key=key,
                raw=raw,
                where=where or FILE,
            )

    def reading(self) -> Reading:
        """Return what was gathered; a file that gave nothing at all is a problem of its own."""
        if not self.observations and not self.problems:
            self.trouble("nothing_found", "The file holds none of the fields that this tool writes.", "文件中没有该工具应输出的任何字段。")
        return Reading(tuple(self.observations), tuple(self.problems))


def clip(text: str, limit: int = 160) -> str:
    """Return the text on one line, at most `limit` characters, braces kept literal by the caller's format."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def available(text: str) -> bool:
    """Tell whether a text says something (`N/A`, `Not Specified` and the like do not)."""
    return text.strip().lower() not in NOT_AVAILABLE


def exact(value: Any) -> Decimal | None:
    """Return a finite number exactly: a JSON number, or a text of digits. Booleans, NaN, infinities and anything else are None."""
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return Decimal(value.strip())
    return None


def decode(data: bytes, into: Collector) -> str | None:
    """Return the file as text (UTF-8), or add a problem and return None when it is empty or not text."""
    if not data.strip():
        into.trouble("empty", "The file is empty: the tool wrote nothing.", "文件为空：工具没有任何输出。")
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            into.trouble(
                "not_text",
                "The file is UTF-16 text, as a redirection in Windows PowerShell writes it: save it as UTF-8.",
                "文件是 UTF-16 文本（Windows PowerShell 的重定向即如此写入）：请另存为 UTF-8。",
            )
        else:
            into.trouble("not_text", "The file is not UTF-8 text (byte {at}).", "文件不是 UTF-8 文本（第 {at} 字节）。", at=error.start)
        return None
    if "\x00" in text:
        into.trouble("not_text", "The file holds null characters: it was not written to the end.", "文件含有空字符：没有完整写入。")
        return None
    return text


def load_json(data: bytes, into: Collector) -> Any:
    """Return the JSON value of a file with numbers as Decimal, or None with a problem.

    Text before or after the value is a problem, and the value is still returned, so that a judge can tell a failed
    measurement from an unreadable one.
    """
    text = decode(data, into)
    if text is None:
        return None
    twice: list[str] = []
    decoder = json.JSONDecoder(
        parse_float=_decimal, parse_int=_decimal, parse_constant=lambda _: None, object_pairs_hook=lambda pairs: _object(pairs, twice)
    )
    failure: Text | None = None
    for start in _starts(text):
        try:
            value, end = decoder.raw_decode(text, start)
            if has_broken_text(value, text):
                raise ValueError("it holds half of a surrogate pair, which is no text")
        except (ValueError, RecursionError, InvalidOperation) as error:
            failure = failure or said(error)
            twice.clear()
            continue
        if twice:
            into.trouble(
                "duplicate_key",
                "A key stands twice in one object with two values: {names}. Which one counts nobody can tell.",
                "同一对象中键重复且取值不同：{names}，无法判断以哪个为准。",
                names=", ".join(dict.fromkeys(twice[:5])),
            )
        before, after = text[:start].strip(), text[end:].strip()
        if before:
            into.trouble("text_before_json", "Text stands before the JSON: {before}", "JSON 之前有文字：{before}", before=before)
        if after:
            into.trouble("text_after_json", "Text stands after the JSON: {after}", "JSON 之后有文字：{after}", after=after)
        return value
    into.trouble("not_json", "The file is not complete JSON: {why}", "文件不是完整的 JSON：{why}", why=failure or clip(text, 80))
    return None


def _object(pairs: list[tuple[str, Any]], twice: list[str]) -> dict[str, Any]:
    """Return an object, and note each key that it names twice with two values."""
    out = dict(pairs)
    if len(out) != len(pairs):
        twice += [clip(key, 60) for key, value in pairs if out[key] != value]
    return out


def _starts(text: str) -> Iterator[int]:
    """Yield the positions of lines that begin with a JSON object or array, at most 50 of them."""
    for count, found in enumerate(re.finditer(r"^[ \t]*[\[{]", text, re.MULTILINE)):
        if count >= 50:
            return
        yield found.end() - 1


def _decimal(text: str) -> Decimal | None:
    """Return a JSON number exactly; an absurdly long or large one is no number."""
    if len(text) > 60:
        return None
    value = Decimal(text)
    if value.is_zero():  # 0e999999 is a zero that takes a million digits to write
        return Decimal(0)
    return value if value.is_finite() and abs(value.adjusted()) < 40 else None


def once(pairs: Iterable[tuple[str, str]], into: Collector) -> dict[str, str]:
    """Return the fields of a text by their names, the first of each; a name that stands twice is a problem."""
    out: dict[str, str] = {}
    for key, value in pairs:
        if key in out:
            into.trouble("duplicate", "{what} stands twice.", "{what} 重复出现。", what=key)
        out.setdefault(key, value)
    return out


def rows(value: Any, key: str = "") -> list[dict[str, Any]]:
    """Return the objects of a list (or of `value[key]`); anything else is left out."""
    inner = value.get(key) if key and isinstance(value, dict) else value
    return [row for row in inner if isinstance(row, dict)] if isinstance(inner, list) else []


def part(value: Any, *keys: str) -> Any:
    """Return `value[key1][key2]...`, or None where a key is missing or a holder is not an object."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
