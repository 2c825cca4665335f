"""Raw figures of the reference library: exact numbers, before and after, and findings about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

from gates.rules.estimates import to_decimal
from gates.text import Text


@dataclass(frozen=True)
class Finding:
    """One contradiction in published figures: a stable code, the report, and the sentence with its numbers."""

    code: str
    report: str
    en: str
    zh: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def message(self) -> Text:
        """Return the sentence in both languages."""
        return Text(self.en, self.zh).fill(**self.values)

    def json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"code": self.code, "report": self.report, "message": self.message.json(), "values": {k: str(v) for k, v in self.values.items()}}


def number(value: Any) -> Fraction | None:
    """Return a positive number exactly, or None."""
    return Fraction(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) and value > 0 else None


def pairs(row: Mapping[str, Any], name: str) -> list[tuple[Fraction, Fraction]]:
    """Return the (before, after) pairs of a field: one, or one a tier."""
    holder = row.get(name)
    if not isinstance(holder, Mapping):
        return []
    sides = [side if isinstance(side, list) else [side] for side in (holder.get("before"), holder.get("after"))]
    numbers = [[number(v) for v in side] for side in sides]
    return [(a, b) for a, b in zip(*numbers, strict=False) if a is not None and b is not None]


def decimals(values: Iterable[Any]) -> list[Decimal]:
    """Return the numbers of a list."""
    return [Decimal(v) for v in values if isinstance(v, int | Decimal) and not isinstance(v, bool)]


def places(stated: Decimal) -> int:
    """Return how many decimals a figure is stated with."""
    exponent = stated.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def kept(value: Fraction, stated: Decimal) -> Decimal:
    """Return a value rounded (half to even) to the decimals of a stated figure."""
    return to_decimal(value, places(stated)).quantize(Decimal(1).scaleb(-places(stated)), ROUND_HALF_EVEN)


def spread(value: Any) -> tuple[Fraction, Fraction]:
    """Return the ends between which a figure lies that was rounded as it is stated."""
    half = Fraction(1, 2) / 10 ** places(Decimal(value))
    return Fraction(value) - half, Fraction(value) + half


def shown(value: Fraction, digits: int) -> str:
    """Return a value for print."""
    return format(to_decimal(value, digits), "f")
