"""Numbers and times as people read them: formatted once, here, for the web, the API's dataset and the PDF.

Rule of all of them: a printed number never says something else than the compared one. Where rounding would move a value
onto or across its limit, digits are added until it no longer does. Rounding is half to even, as GB/T 8170 asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext
from typing import Any

from app.kit.clock import shown

MISSING = "n/a"
MAX_DIGITS = 30


def zh(language: str) -> bool:
    """Tell whether a locale name means Chinese: anything that starts with zh, as in `gates.text`."""
    return language.lower().startswith("zh")


def number(value: Any) -> Decimal | None:
    """Return a finite Decimal of a decimal string, int or float; None for anything else (text, NaN, infinity, nothing)."""
    if value is None or isinstance(value, bool):
        return None
    try:
        result = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return result if result.is_finite() else None


def rounded(value: Decimal, digits: int, limits: Iterable[Decimal] = ()) -> str:
    """Return plain decimal text with at least `digits` decimals, more when rounding would touch or cross zero or one of `limits`."""
    with localcontext() as context:
        context.prec = 60
        for places in range(digits, MAX_DIGITS):
            shown = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN)
            if all(_side(shown, limit) == _side(value, limit) for limit in (Decimal(0), *limits)):
                return _unsigned_zero(format(shown, "f"))
        return format(value, "f")


def exact(value: Any) -> str:
    """Return every digit of a number, without an exponent and without padding zeros; other text as it is."""
    got = number(value)
    if got is None:
        return MISSING if value is None else str(value)
    text = format(got, "f")
    return _unsigned_zero(text.rstrip("0").rstrip(".") if "." in text else text)


def percent(value: Any, *, digits: int = 2, limits: Iterable[Any] = (), sign: bool = False) -> str:
    """Format a ratio (0.2596) as percent ("25.96 %"); `limits` are ratios too, `sign` puts a plus before gains."""
    got = number(value)
    if got is None:
        return MISSING
    scaled = [Decimal(100) * limit for limit in map(number, limits) if limit is not None]
    text = rounded(Decimal(100) * got, digits, scaled)
    return f"{'+' if sign and got > 0 else ''}{text} %"


def limit_percent(value: Any, *, sign: bool = False) -> str:
    """Format the ratio of a limit with exactly the digits it was agreed with: 0.25 is "25 %", 0.005 is "0.5 %"."""
    got = number(value)
    if got is None:
        return MISSING
    return f"{'+' if sign and got > 0 else ''}{exact(Decimal(100) * got)} %"


def grouped(value: Any, *, digits: int = 0, limits: Iterable[Any] = ()) -> str:
    """Format a plain number with a comma at every third digit from 10,000 on."""
    got = number(value)
    if got is None:
        return MISSING
    text = rounded(got, digits, [limit for limit in map(number, limits) if limit is not None])
    head, dot, tail = text.partition(".")
    if len(head.lstrip("-")) > 4:
        head = f"{int(head):,}"
    return head + dot + tail


def ms(value: Any, *, digits: int = 1, limits: Iterable[Any] = ()) -> str:
    """Format milliseconds. Short times keep more digits: below 10 ms three, below 100 ms two."""
    got = number(value)
    if got is None:
        return MISSING
    places = max(digits, 3 if abs(got) < 10 else 2 if abs(got) < 100 else digits)
    return f"{grouped(got, digits=places, limits=limits)} ms"


def ms_of_ns(value: Any, *, limits: Iterable[Any] = ()) -> str:
    """Format nanoseconds as milliseconds; `limits` are nanoseconds too."""
    got = number(value)
    if got is None:
        return MISSING
    million = Decimal(1_000_000)
    return ms(got / million, limits=[limit / million for limit in map(number, limits) if limit is not None])


def tok_s(value: Any, *, limits: Iterable[Any] = ()) -> str:
    """Format output tokens per second."""
    got = number(value)
    if got is None:
        return MISSING
    return f"{grouped(got, digits=1 if abs(got) >= 100 else 2, limits=limits)} tok/s"


def size(value: Any, *, limits: Iterable[Any] = ()) -> str:
    """Format a number of bytes in decimal units, as drives are sold: 7.68 TB, 41.6 MB. Below 100,000 B every byte is printed: 4096 B."""
    got = number(value)
    if got is None:
        return MISSING
    for unit, power in (("PB", 15), ("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if abs(got) >= max(Decimal(10) ** power, Decimal(100_000)):
            bounds = [limit.scaleb(-power) for limit in map(number, limits) if limit is not None]
            return f"{exact(rounded(got.scaleb(-power), 2, bounds))} {unit}"
    return f"{grouped(got)} B" if got == got.to_integral_value() else f"{exact(got)} B"


def megabytes(value: Any) -> str:
    """Format bytes in MB with one decimal, for columns whose rows differ little."""
    got = number(value)
    return MISSING if got is None else f"{grouped(got.scaleb(-6), digits=1)} MB"


def bit_rate(value: Any) -> str:
    """Format bits per second in the largest decimal unit: 100 Gbit/s."""
    got = number(value)
    if got is None:
        return MISSING
    for unit, power in (("Tbit/s", 12), ("Gbit/s", 9), ("Mbit/s", 6)):
        if abs(got) >= Decimal(10) ** power:
            return f"{exact(rounded(got.scaleb(-power), 2))} {unit}"
    return f"{exact(got)} bit/s"


def duration(seconds: Any, language: str = "en") -> str:
    """Format seconds in the two largest units that matter: "72 h", "1 h 30 min", "4.2 s"; in Chinese 72 小时, 1 小时 30 分钟."""
    got = number(seconds)
    if got is None:
        return MISSING
    hour, minute, second = ("小时", "分钟", "秒") if zh(language) else ("h", "min", "s")
    if abs(got) < 60:
        return f"{exact(rounded(got, 1))} {second}"
    total = int(got.to_integral_value(rounding=ROUND_HALF_EVEN))
    hours, rest = divmod(total, 3600)
    minutes, left = divmod(rest, 60)
    parts = [(hours, hour), (minutes, minute), (left if not hours else 0, second)]
    return " ".join(f"{n} {name}" for n, name in parts if n)


def moment(value: datetime | str | None) -> str:
    """Format a time to the second in the service's zone, with the zone always printed: "2026-11-29 09:20:31 UTC"."""
    return shown(value) or MISSING


def _side(value: Decimal, limit: Decimal) -> int:
    """Return on which side of a limit a value lies: -1, 0, 1."""
    return (value > limit) - (value < limit)


def _unsigned_zero(text: str) -> str:
    """Return text without the minus sign of a zero."""
    return text.lstrip("-") if text.startswith("-") and not text.strip("-0.") else text
