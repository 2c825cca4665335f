"""Long journals read by their shape: a machine writes the same line a million times with other numbers in it.

The first line of a form is read strictly, like any other JSON. From it comes a pattern that says the same of the bytes: the same keys in
the same order, the same words where they matter, whole numbers where there were whole numbers. Lines that match need no second reading,
and only the wanted values are taken out of them; any line that does not match is read strictly again. So nothing passes by the short way
that the strict reader would refuse, and the short way takes a third of the time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Path = tuple[str, ...]
MOST_DIGITS = 18  # of a number that is taken by its shape: it fits into 63 bits
_COUNT = rb"(?:0|[1-9]\d{0,17})"
_NUMBER = rb"(?:0|[1-9]\d{0,29})"
_DECIMAL = rb"-?(?:0|[1-9]\d*+)\.\d++(?:[eE][+-]?\d++)?"
# ASCII without quotes and control characters, or an escape that is no half of a surrogate pair. Possessive: a mismatch is found at once.
_PLAIN = rb"[ !#-\[\]-~]*+"
_INSIDE = _PLAIN + rb"(?:\\(?:[\"\\/bfnrt]|u(?![dD][89abABcdefCDEF])[0-9a-fA-F]{4})" + _PLAIN + rb")*+"
_WORD = rb'"' + _INSIDE + rb'"'


@dataclass(frozen=True)
class Wanted:
    """What is taken out of each line, by the path of its keys.

    `whole` numbers are not taken out, but must be such that fit into 63 bits; `exact` values must be those of the line that made the shape.
    """

    counts: tuple[Path, ...]
    texts: tuple[Path, ...] = ()
    exact: frozenset[Path] = frozenset()
    whole: frozenset[Path] = frozenset()

    def takes_text(self, path: Path) -> bool:
        """Tell whether the text at a path is taken out."""
        return path in self.texts


@dataclass(frozen=True)
class Shape:
    """One form of a line. `row` is the line that made it: what is not taken out of a line is as in this one, or does not matter."""

    row: Mapping[str, Any]
    pattern: re.Pattern[bytes]
    places: Mapping[Path, int]  # which value of a line is which

    def lines(self, block: bytes) -> list[tuple[bytes, ...]]:
        """Return the values of all lines of the block that have this form."""
        return self.pattern.findall(block)

    def line(self, line: bytes) -> tuple[bytes, ...] | None:
        """Return the values of one line with its line end, or None when it has another form."""
        match = self.pattern.fullmatch(line)
        return match.groups() if match else None


def shape_of(line: bytes, row: Mapping[str, Any], wanted: Wanted) -> Shape | None:
    """Return the shape of a line that was read strictly, or None when it has none (spaces between tokens, text that is not ASCII)."""
    groups: list[Path] = []
    pattern = re.compile(rb"^" + _object(row, (), wanted, groups) + rb"\n", re.MULTILINE)
    if len(groups) < 2 or not pattern.fullmatch(line):
        return None
    return Shape(row, pattern, {path: n for n, path in enumerate(groups)})


def _object(row: Mapping[str, Any], at: Path, wanted: Wanted, groups: list[Path]) -> bytes:
    parts = [re.escape(json.dumps(key).encode()) + b":" + _value(value, (*at, key), wanted, groups) for key, value in row.items()]
    return rb"\{" + b",".join(parts) + rb"\}"


def _value(value: Any, at: Path, wanted: Wanted, groups: list[Path]) -> bytes:
    if isinstance(value, Mapping):
        return _object(value, at, wanted, groups)
    if at in wanted.exact or value is None or isinstance(value, bool):
        return re.escape(json.dumps(value).encode())
    if isinstance(value, int):
        if value < 0 or (len(str(value)) > MOST_DIGITS and (at in wanted.whole or at in wanted.counts)):
            return re.escape(str(value).encode())
        if at in wanted.counts:
            groups.append(at)
            return b"(" + _COUNT[3:-1] + b")"
        return _COUNT if at in wanted.whole else _NUMBER
    if isinstance(value, str):
        if wanted.takes_text(at):
            groups.append(at)
            return b'"(' + _PLAIN + b')"'
        return _WORD
    if isinstance(value, Decimal):
        return _DECIMAL
    return _list(value)


def _list(values: Sequence[Any]) -> bytes:
    if not values:
        return rb"\[\]"
    kinds = {type(v) for v in values}
    if kinds == {str}:
        return rb"\[" + _WORD + rb"(?:," + _WORD + rb")*+\]"
    if kinds == {int} and min(values) >= 0:
        return rb"\[" + _NUMBER + rb"(?:," + _NUMBER + rb")*+\]"
    return rb"\[" + b",".join(_value(v, (), Wanted(()), []) for n, v in enumerate(values)) + rb"\]"


def whole_lines(blocks: Iterable[bytes], size: int = 1 << 18) -> Iterator[bytes]:
    """Yield blocks of whole lines of about `size` bytes; what stands behind the last line end comes last, without one."""
    rest = b""
    for block in blocks:
        start, view = 0, rest + block if rest else block
        while len(view) - start >= size:
            end = view.rfind(b"\n", start, start + size) + 1 or view.find(b"\n", start) + 1
            if not end:
                break
            yield view[start:end]
            start = end
        rest = view[start:]
    end = rest.rfind(b"\n") + 1
    if end:
        yield rest[:end]
    if rest[end:]:
        yield rest[end:]
