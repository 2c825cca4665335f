"""Canonical JSON (RFC 8785) and its SHA-256: what is hashed, sealed and signed is always these bytes.

Two kinds of number cannot travel through RFC 8785 unharmed, since it writes every number as a double: exact decimals, and
integers beyond 2**53 (a wall clock in nanoseconds). Both become decimal strings, as RFC 7493 (I-JSON) advises.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import rfc8785

_SAFE = 2**53 - 1
_MOST_DIGITS = 400  # on either side of the point: more than any figure here, and than a double has


def writable(value: Decimal) -> bool:
    """Return whether a number can be written out plainly. `1e999999999` is ten characters to read and a gigabyte to write."""
    if not value.is_finite():
        return False
    exponent = value.as_tuple().exponent
    return (
        isinstance(exponent, int) and exponent >= -_MOST_DIGITS and (value.is_zero() or value.adjusted() < _MOST_DIGITS) and exponent < _MOST_DIGITS
    )


def decimal_text(value: Decimal) -> str:
    """Return the one plain spelling of an exact decimal: no exponent, no trailing zeros, no negative zero."""
    if not writable(value):
        raise ValueError(f"{value:.6} is not a number that can be written down")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def has_broken_text(value: Any, source: str) -> bool:
    """Return whether a tree read from a JSON source holds half of a surrogate pair: a word that cannot be written down again."""
    if "\\ud" not in source and "\\uD" not in source:
        return False
    if isinstance(value, Mapping):
        return any(has_broken_text(part, source) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple):
        return any(has_broken_text(part, source) for part in value)
    return isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value)


def plain(value: Any) -> Any:
    """Return the JSON form of a tree: decimals and very large integers as strings, tuples as lists. Other types are refused."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return value if -_SAFE <= value <= _SAFE else str(value)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")


def canonical_bytes(obj: Any) -> bytes:
    """Return the canonical JSON of a tree of plain data (UTF-8, RFC 8785)."""
    data: bytes = rfc8785.dumps(plain(obj))
    return data


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_of(obj: Any) -> str:
    """Return `sha256:<hex>` of the canonical JSON of a tree."""
    return "sha256:" + sha256_hex(canonical_bytes(obj))
