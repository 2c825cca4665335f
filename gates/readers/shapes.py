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

import numpy as np

Path = tuple[str, ...]
MOST_DIGITS = 18  # of a number that is taken by its shape: it fits into 63 bits
_SPACE = 0x20
MOST_WORDS = 64  # of a list that is spelled out; a longer one is matched in a loop, which takes longer
# Possessive throughout: a number or word is taken whole, so a line that does not match is given up at once.
_COUNT = rb"(?!0\d)\d{1,18}+"
_NUMBER = rb"(?!0\d)\d{1,30}+"
_DECIMAL = rb"-?(?:0|[1-9]\d*+)\.\d++(?:[eE][+-]?\d++)?"
# ASCII without quotes and control characters; where the first line has an escape, that too, but no half of a surrogate pair.
_PLAIN = rb"[ !#-\[\]-~]*+"
_INSIDE = _PLAIN + rb"(?:\\(?:[\"\\/bfnrt]|u(?![dD][89abABcdefCDEF])[0-9a-fA-F]{4})" + _PLAIN + rb")*+"
_NEVER = rb"(?!)"
_WORD, _ESCAPED = b'"' + _PLAIN + b'"', b'"' + _INSIDE + b'"'


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
    quick: re.Pattern[bytes]  # says the same of a plain block (is_plain), in three quarters of the time
    places: Mapping[Path, int]  # which value of a line is which

    def lines(self, block: bytes, *, plain: bool) -> list[tuple[bytes, ...]]:
        """Return the values of all lines of the block that have this form; fewer than it has lines when any has another."""
        return (self.quick if plain else self.pattern).findall(block)

    def line(self, line: bytes) -> tuple[bytes, ...] | None:
        """Return the values of one line with its line end, or None when it has another form."""
        match = self.pattern.fullmatch(line)
        return match.groups() if match else None


def shape_of(line: bytes, row: Mapping[str, Any], wanted: Wanted) -> Shape | None:
    """Return the shape of a line that was read strictly, or None when it has none (spaces between tokens, text that is not ASCII)."""
    groups: list[Path] = []
    source = rb"^" + _object(row, (), wanted, groups) + rb"\n"
    pattern = re.compile(source, re.MULTILINE)
    if len(groups) < 2 or not pattern.fullmatch(line):
        return None
    return Shape(row, pattern, re.compile(source.replace(_PLAIN, rb'[^"]*+'), re.MULTILINE), {path: n for n, path in enumerate(groups)})


def is_plain(block: bytes, lines: int) -> bool:
    """Tell whether all characters of a block are printable ASCII without a backslash, but for the ends of its lines.

    Then everything up to the next quotation mark is a JSON string as it stands. One that ran on over a line end would make a match of two
    lines, and the block would have fewer matches than lines.
    """
    codes = np.frombuffer(block, dtype=np.uint8)
    return block.isascii() and b"\\" not in block and int(np.count_nonzero(codes < _SPACE)) == lines


def _object(row: Mapping[str, Any], at: Path, wanted: Wanted, groups: list[Path]) -> bytes:
    parts = [re.escape(json.dumps(key).encode()) + b":" + _value(value, (*at, key), wanted, groups) for key, value in row.items()]
    return rb"\{" + b",".join(parts) + rb"\}"


def _value(value: Any, at: Path, wanted: Wanted, groups: list[Path]) -> bytes:
    if isinstance(value, Mapping):
        return _object(value, at, wanted, groups)
    if at in wanted.exact and not (value is None or isinstance(value, str | int)):
        return _NEVER  # no value that such a field can have: each of these lines is read strictly
    if at in wanted.exact or value is None or isinstance(value, bool):
        return re.escape(json.dumps(value).encode())
    if isinstance(value, int):
        if value < 0 or (len(str(value)) > MOST_DIGITS and (at in wanted.whole or at in wanted.counts)):
            return re.escape(str(value).encode())
        if at in wanted.counts:
            groups.append(at)
            return b"(" + _COUNT + b")"
        return _COUNT if at in wanted.whole else _NUMBER
    if isinstance(value, str):
        if wanted.takes_text(at):
            groups.append(at)
            return b'"(' + _PLAIN + b')"'
        return _word(value)
    if isinstance(value, Decimal):
        return _DECIMAL
    return _list(value)


def _list(values: Sequence[Any]) -> bytes:
    if not values:
        return rb"\[\]"
    kinds = {type(v) for v in values}
    if kinds == {str} and len(values) <= MOST_WORDS:
        return rb"\[" + b",".join(_word(v) for v in values) + rb"\]"
    if kinds == {str}:
        return rb"\[" + _ESCAPED + rb"(?:," + _ESCAPED + rb")*+\]"
    if kinds == {int} and min(values) >= 0:
        return rb"\[" + _NUMBER + rb"(?:," + _NUMBER + rb")*+\]"
    return rb"\[" + b",".join(_value(v, (), Wanted(()), []) for n, v in enumerate(values)) + rb"\]"


def _word(value: str) -> bytes:
    plain = value.isascii() and value.isprintable() and '"' not in value and "\\" not in value
    return _WORD if plain else _ESCAPED


def whole_lines(blocks: Iterable[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """Yield blocks of whole lines, none much longer than `size` bytes; what stands behind the last line end comes last, without one."""
    rest = b""
    for block in blocks:
        for begin in range(0, len(block), size) if len(block) > 2 * size else (0,):
            part = block[begin : begin + size] if len(block) > 2 * size else block
            end = part.rfind(b"\n") + 1
            if end:
                yield rest + part[:end]
                rest = part[end:]
            else:
                rest += part
    if rest:
        yield rest
