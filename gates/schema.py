"""A small typed schema: each field of a frozen dataclass carries the one specification that reads, checks and writes it.

Reading never raises: it collects a sentence for each problem, with the path of the field, what stands there and what is allowed, so
that one pass shows a person everything that is wrong.
"""

# ruff: noqa: D102 - the protocol Spec says what every read and write does
from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from gates.canonical import decimal_text, writable
from gates.text import Text, seen
from gates.units import BadQuantity, Quantity, parse_quantity, units_of

_NUMBER = re.compile(r"[-+]?[0-9]{1,60}(\.[0-9]{0,60})?([eE][-+]?[0-9]{1,3})?")
BAD: Any = object()  # what a specification returns beside a problem; never leaves this module's callers


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong at one field: its dotted path and a sentence that names it."""

    path: str
    message: Text


class Problems:
    """Collects the problems of one reading."""

    def __init__(self) -> None:
        self.found: list[FieldProblem] = []

    def add(self, path: str, en: str, zh: str) -> Any:
        """Record a sentence about a field, and return BAD."""
        name = path or "plan"
        self.found.append(FieldProblem(path, Text(f"{name}: {en}", f"{name}：{zh}")))
        return BAD

    def expected(self, path: str, value: Any, en: str, zh: str) -> Any:
        """Record that something else was expected here."""
        seen = shown(value)
        return self.add(path, f"{seen.en} is not allowed here; allowed: {en}.", f"此处不允许 {seen.zh}；允许：{zh}。")

    def unknown(self, path: str, key: str, known: Iterable[str], *, below: str = "", why: Text | None = None) -> Any:
        """Record that nothing has a key of this name at `path`, with the one that was probably meant.

        `below`: where a key of this very name does stand; `why`: what would become of it here.
        """
        names = list(known)
        listed, meant, why = ", ".join(names), below or meant_by(key, names), why or Text("", "")
        guess = Text(f" Did you mean `{meant}`?", f"是否应为 `{meant}`？") if meant else Text("", "")
        return self.add(
            join(path, key), f"this key is unknown{why.en}.{guess.en} Known here: {listed}.", f"未知的键{why.zh}。{guess.zh}此处可用：{listed}。"
        )


def meant_by(word: str, known: Iterable[str]) -> str:
    """Return the known word that a mistyped one probably stands for; empty where none is near. Case, and dashes for underscores, do not count."""
    plain = {name.lower().replace("-", "_"): name for name in known}
    near = difflib.get_close_matches(word.lower().replace("-", "_"), plain, n=1)
    return plain[near[0]] if near else ""


def shown(value: Any) -> Text:
    """Return a short form of what a person wrote, safe to put in a sentence of either language."""
    if isinstance(value, Mapping):
        return Text("a map", "映射")
    if isinstance(value, list | tuple):
        return Text("a list", "列表")
    if isinstance(value, int) and abs(value) >= 10**60:
        return Text("a number of more than 60 digits", "超过 60 位的数")
    text = "null" if value is None else repr(value) if isinstance(value, str) else str(value)
    short = text if len(text) <= 60 else text[:57] + "..."
    return Text(short, short)


class Spec(Protocol):
    """Reads one value of plain data into its typed form, and writes it back."""

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the typed value, or BAD after adding a problem."""

    def write(self, value: Any) -> Any:
        """Return the plain, canonical form."""


class _Same:
    """Values whose typed form is their plain form."""

    def write(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class Whole(_Same):
    """A whole number within bounds (both included)."""

    low: int
    high: int

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        number = to_decimal(value)
        if isinstance(value, Decimal | float) and number is not None and number == number.to_integral_value():
            value = int(number)
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            return problems.expected(path, value, f"a whole number from {self.low} to {self.high}", f"{self.low} 到 {self.high} 的整数")
        return value


@dataclass(frozen=True)
class Exact:
    """An exact decimal within bounds, e.g. a ratio. Never a float: a float's shortest spelling is what the person wrote."""

    low: Decimal
    high: Decimal
    open_low: bool = False

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        number = to_decimal(value)
        allowed = f"{'>' if self.open_low else '>='} {decimal_text(self.low)}, <= {decimal_text(self.high)}"
        if number is None or number > self.high or number < self.low or (self.open_low and number == self.low):
            return problems.expected(path, value, f"an exact number {allowed}", f"精确数值，{allowed}")
        return Decimal(decimal_text(number))

    def write(self, value: Any) -> Any:
        return decimal_text(value)


@dataclass(frozen=True)
class Measure:
    """A quantity with its unit, e.g. `72 h`."""

    kind: str
    low: Decimal = Decimal(0)
    high: Decimal | None = None  # in the base unit
    open_low: bool = False

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        units = ", ".join(units_of(self.kind))
        if not isinstance(value, str):
            return problems.expected(path, value, f"a number with its unit ({units})", f"带单位的数值（{units}）")
        try:
            quantity = parse_quantity(value, self.kind)
        except BadQuantity as error:
            return problems.add(path, f"{error}.", f"{shown(value).zh} 不是允许的数量；单位：{units}。")
        too_low = quantity.base < self.low or (self.open_low and quantity.base == self.low)
        if too_low or (self.high is not None and quantity.base > self.high):
            top = "" if self.high is None else f", <= {self.high}"
            bounds = f"{'>' if self.open_low else '>='} {self.low}{top} ({self.kind}, base unit)"
            return problems.expected(path, value, bounds, bounds)
        return Quantity(Decimal(decimal_text(quantity.value)), quantity.unit)

    def write(self, value: Any) -> Any:
        return str(value)


@dataclass(frozen=True)
class Choice(_Same):
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        if value not in self.words or not isinstance(value, str):
            listed = " | ".join(self.words)
            return problems.expected(path, value, listed, listed)
        return value


@dataclass(frozen=True)
class Words(_Same):
    """Free text on one line, by a pattern when one is given."""

    pattern: str = r"[^\x00-\x1f\x7f]{1,200}"
    says: str = "text of 1 to 200 characters on one line"
    says_zh: str = "1 到 200 个字符的单行文字"

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value) or not seen(value):
            return problems.expected(path, value, self.says, self.says_zh)
        return value


@dataclass(frozen=True)
class Day(_Same):
    """A day of the calendar, e.g. 2026-12-01, within two centuries: what is reckoned from it is a day as well."""

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        try:
            known = isinstance(value, str) and re.fullmatch(r"2[01][0-9]{2}-[0-9]{2}-[0-9]{2}", value) and date.fromisoformat(value)
        except ValueError:  # the 30th of February
            known = None
        if not known:
            return problems.expected(path, value, "a date of the calendar such as 2026-12-01, in quotes", "带引号的日历日期，如 2026-12-01")
        return value


@dataclass(frozen=True)
class YesNo(_Same):
    """true or false."""

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        return value if isinstance(value, bool) else problems.expected(path, value, "true | false", "true | false")


@dataclass(frozen=True)
class Maybe:
    """A value that may be null: agreed to be absent."""

    inner: Spec

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        return None if value is None else self.inner.read(value, path, problems)

    def write(self, value: Any) -> Any:
        return None if value is None else self.inner.write(value)


@dataclass(frozen=True)
class Items:
    """A list; its typed form is a tuple. A list of the differences replaces the default's list as a whole."""

    inner: Spec
    least: int = 0
    most: int = 64
    unique: bool = True

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, list | tuple) or not self.least <= len(value) <= self.most:
            return problems.expected(path, value, f"a list of {self.least} to {self.most} entries", f"{self.least} 到 {self.most} 项的列表")
        read = [self.inner.read(item, f"{path}[{i}]", problems) for i, item in enumerate(value)]
        if BAD in read:
            return BAD
        if self.unique and any(item in read[:i] for i, item in enumerate(read)):
            return problems.add(path, "an entry stands twice in the list.", "列表中有重复项。")
        return tuple(read)

    def write(self, value: Any) -> Any:
        return [self.inner.write(item) for item in value]


@dataclass(frozen=True)
class Table:
    """A map from free keys to values of one kind. `keys` reads a key's text into its typed form."""

    keys: Callable[[str], Any]
    says: str
    inner: Spec
    required: tuple[Any, ...] = ()

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            return problems.expected(path, value, f"a map of {self.says}", f"映射表（{self.says}）")
        out: dict[Any, Any] = {}
        for raw, item in value.items():
            try:
                key = self.keys(str(raw))
            except ValueError:
                problems.add(path, f"the key {shown(raw).en} is not allowed; allowed: {self.says}.", f"不允许键 {shown(raw).zh}；允许：{self.says}。")
                continue
            if key in out:
                problems.add(f"{path}.{raw}", "this key stands twice.", "此键重复。")
            out[key] = self.inner.read(item, f"{path}.{raw}", problems)
        for key in self.required:
            if key not in out:
                out[key] = problems.add(f"{path}.{key}", "this key is missing.", "缺少此键。")
        return BAD if BAD in out.values() else out

    def write(self, value: Any) -> Any:
        return {str(k): self.inner.write(v) for k, v in value.items()}


@dataclass(frozen=True)
class Section:
    """A map with fixed keys: a frozen dataclass whose fields carry their specifications."""

    cls: type

    def read(self, value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            return problems.expected(path, value, f"a map with {', '.join(keys_of(self.cls))}", f"映射表：{', '.join(keys_of(self.cls))}")
        specs = {key_of(f): f for f in dataclasses.fields(self.cls)}
        for key in value:
            if key not in specs:
                deeper = [name for name, f in specs.items() if isinstance(f.metadata["spec"], Section) and key in keys_of(f.metadata["spec"].cls)]
                problems.unknown(path, str(key), specs, below=join(path, f"{deeper[0]}.{key}") if deeper else "")
        got: dict[str, Any] = {}
        for key, field in specs.items():
            if key not in value and "absent" in field.metadata:
                got[field.name] = field.metadata["absent"]
            elif key not in value:
                problems.add(join(path, key), "this key is missing.", "缺少此键。")
                got[field.name] = BAD
            else:
                got[field.name] = field.metadata["spec"].read(value[key], join(path, key), problems)
        return BAD if BAD in got.values() else self.cls(**got)

    def write(self, value: Any) -> Any:
        written = [f for f in dataclasses.fields(self.cls) if "absent" not in f.metadata or getattr(value, f.name) != f.metadata["absent"]]
        return {key_of(f): f.metadata["spec"].write(getattr(value, f.name)) for f in written}


def of(spec: Spec, key: str = "") -> Any:
    """Declare a field of a section; `key` where the YAML name differs from the attribute."""
    return dataclasses.field(metadata={"spec": spec, "key": key})


def later(spec: Spec, absent: Any) -> Any:
    """Declare a field that sections written before it existed lack. Lacking it means `absent`, which is never written: their hashes stay."""
    return dataclasses.field(metadata={"spec": spec, "key": "", "absent": absent})


def section(cls: type, key: str = "") -> Any:
    """Declare a field that is a section of its own."""
    return of(Section(cls), key)


def key_of(field: dataclasses.Field[Any]) -> str:
    """Return the YAML name of a field."""
    return field.metadata["key"] or field.name


def keys_of(cls: type) -> list[str]:
    """Return the YAML names of a section's fields."""
    return [key_of(f) for f in dataclasses.fields(cls)]


def join(path: str, key: str) -> str:
    """Return the dotted path of a key."""
    return f"{path}.{key}" if path else key


def to_decimal(value: Any) -> Decimal | None:
    """Return the exact number that a person wrote, or None. A bool is no number; NaN, infinity and a number beyond reason are none either."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return None
    try:
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    except (InvalidOperation, ValueError):
        return None
    return number if writable(number) and _NUMBER.fullmatch(decimal_text(number)) else None  # what is sealed must be readable again
