"""Quantities with units, by one small typed table. A number without its unit, or with a unit of another kind, is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from types import MappingProxyType

from gates.canonical import decimal_text

# unit -> (kind, factor to the kind's base unit). Decimal and binary prefixes are kept apart on purpose: MB is not MiB.
UNITS: MappingProxyType[str, tuple[str, Decimal]] = MappingProxyType(
    {
        "ns": ("time", Decimal("1e-9")),
        "us": ("time", Decimal("1e-6")),
        "ms": ("time", Decimal("1e-3")),
        "s": ("time", Decimal(1)),
        "min": ("time", Decimal(60)),
        "h": ("time", Decimal(3600)),
        "d": ("time", Decimal(86400)),
        "B": ("bytes", Decimal(1)),
        "kB": ("bytes", Decimal(10) ** 3),
        "MB": ("bytes", Decimal(10) ** 6),
        "GB": ("bytes", Decimal(10) ** 9),
        "TB": ("bytes", Decimal(10) ** 12),
        "KiB": ("bytes", Decimal(2**10)),
        "MiB": ("bytes", Decimal(2**20)),
        "GiB": ("bytes", Decimal(2**30)),
        "TiB": ("bytes", Decimal(2**40)),
        "%": ("percent", Decimal(1)),
        "B/s": ("rate", Decimal(1)),
        "kB/s": ("rate", Decimal(10) ** 3),
        "MB/s": ("rate", Decimal(10) ** 6),
        "GB/s": ("rate", Decimal(10) ** 9),
        "KiB/s": ("rate", Decimal(2**10)),
        "MiB/s": ("rate", Decimal(2**20)),
        "GiB/s": ("rate", Decimal(2**30)),
        "bit/s": ("rate", Decimal(1) / 8),
        "Mbit/s": ("rate", Decimal(10) ** 6 / 8),
        "Gbit/s": ("rate", Decimal(10) ** 9 / 8),
        "K": ("temperature", Decimal(1)),
        "degC": ("temperature", Decimal(1)),
    }
)
_ZERO = MappingProxyType({"degC": Decimal("273.15")})  # what stands at 0 of a unit, in the base unit
_FORM = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z/%]+)")


class BadQuantity(ValueError):  # noqa: N818 - an error is named by what is wrong
    """A text that is no quantity of the asked kind; its message says why."""


@dataclass(frozen=True)
class Quantity:
    """An exact value with its unit, e.g. 72 h. `base` is in the base unit of its kind: s, B, %, B/s."""

    value: Decimal
    unit: str

    @property
    def kind(self) -> str:
        """Return time, bytes, percent, rate or temperature."""
        return UNITS[self.unit][0]

    @property
    def base(self) -> Decimal:
        """Return the exact value in the base unit of its kind."""
        return self.value * UNITS[self.unit][1] + _ZERO.get(self.unit, Decimal(0))

    @property
    def ns(self) -> Decimal:
        """Return a time in nanoseconds."""
        if self.kind != "time":
            raise BadQuantity(f"{self} is not a time")
        return self.base * 10**9

    def __str__(self) -> str:
        return f"{decimal_text(self.value)} {self.unit}"


def units_of(kind: str) -> tuple[str, ...]:
    """Return the units that a kind accepts."""
    return tuple(unit for unit, (its_kind, _) in UNITS.items() if its_kind == kind)


def parse_quantity(text: str, kind: str) -> Quantity:
    """Read `72 h`, `4096 B`, `1 %`. Raises BadQuantity with a sentence that names what is allowed."""
    match = _FORM.fullmatch(text.strip())
    allowed = ", ".join(units_of(kind))
    if not match:
        raise BadQuantity(f"{_clipped(text)!r} is not a number followed by a unit ({allowed})")
    number, unit = match.groups()
    if unit not in UNITS:
        raise BadQuantity(f"{_clipped(unit)!r} is not a known unit; allowed here: {allowed}")
    if UNITS[unit][0] != kind:
        raise BadQuantity(f"{unit!r} is a unit of {UNITS[unit][0]}; allowed here: {allowed}")
    try:
        return Quantity(Decimal(number), unit)
    except InvalidOperation as error:  # pragma: no cover - the pattern admits decimals only
        raise BadQuantity(f"{number!r} is not a number") from error


def convert(value: Decimal, unit: str, to: str, *, block: Decimal | None = None) -> Decimal:
    """Return a value exactly in another unit of its kind, e.g. 2 Gbit/s as 250 MB/s, 28 degC as 301.15 K, ns as s.

    The unit `blocks` counts blocks of `block` bytes: without that size it is no quantity. Raises BadQuantity for an unknown unit and for
    units of two kinds: bytes are never read as a rate, and a temperature never as a number.
    """
    if unit == "blocks":
        if block is None or block <= 0:
            raise BadQuantity("a number of blocks says nothing without the size of a block in bytes")
        value, unit = value * block, "B"
    for name in (unit, to):
        if name not in UNITS:
            raise BadQuantity(f"{_clipped(name)!r} is not a known unit; known: {', '.join(UNITS)}")
    if UNITS[unit][0] != UNITS[to][0]:
        raise BadQuantity(f"{unit!r} is a unit of {UNITS[unit][0]}, {to!r} of {UNITS[to][0]}")
    return (Quantity(value, unit).base - _ZERO.get(to, Decimal(0))) / UNITS[to][1]


def _clipped(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def rounded(value: Decimal, places: int) -> Decimal:
    """Return a number with so many decimals, half to even; one too large for that stays as it is (files hold any number, printing never fails)."""
    try:
        return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN)
    except InvalidOperation:
        return value
