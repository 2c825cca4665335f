"""Long journals into columns: every line is read, by its shape or strictly, and handed on in blocks (gates.readers.shapes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gates.bundle import Unreadable
from gates.readers.shapes import Path, Shape, Wanted, is_plain, shape_of, whole_lines
from gates.readers.strict import Reader, decode
from gates.system_words import said

Column = npt.NDArray[np.int64]
SEQ: Path = ("seq",)
_LINE_END = 10
MOST_SHAPES = 64  # a journal with more forms than that is read strictly, line by line


class Sink(Protocol):
    """Where lines go; lines of different shapes may come out of order, and are put in order by their `seq`."""

    def block(self, shape: Shape, lines: Sequence[tuple[bytes, ...]]) -> None:
        """Take lines of one shape."""

    def row(self, row: Mapping[str, Any]) -> bool:
        """Take one line that was read strictly, and tell whether lines of its form may be taken in blocks."""


def numbers(column: Sequence[bytes]) -> Column:
    """Return a column of digits as whole numbers."""
    return np.fromstring(b" ".join(column), dtype=np.int64, sep=" ")


def read_journal(reader: Reader, name: str, wanted: Wanted, sink: Sink) -> int:
    """Hand every line of a numbered journal to the sink, and return how many there are.

    What is wrong is recorded as by Reader.journal: a broken line, one that ends too early, a `seq` that does not count 0, 1, 2, ...
    """
    if not reader.bundle.has(reader.path(name)):
        reader.trouble("missing", name, "this file is missing.", "缺少此文件。")
        return 0
    lines = _Lines(reader, name, wanted, sink)
    try:
        for block in whole_lines(reader.bundle.blocks(reader.path(name))):
            lines.take(block)
    except Unreadable as error:
        reader.unreadable(name, error)
    except UnicodeDecodeError:
        reader.trouble("encoding", name, "is not UTF-8 text.", "不是 UTF-8 文本。")
    return lines.seen


class _Lines:
    """The state of one reading: the shapes met so far, the one met last, and the number that must come next."""

    def __init__(self, reader: Reader, name: str, wanted: Wanted, sink: Sink) -> None:
        self.reader, self.name, self.sink = reader, name, sink
        self.wanted = replace(wanted, counts=(SEQ, *wanted.counts))
        self.shapes: list[Shape] = []
        self.number = self.seen = 0  # lines, and lines that are rows
        self.in_order = True

    def take(self, block: bytes) -> None:
        """Read a block of whole lines; only the last of a journal may lack its line end."""
        count = int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _LINE_END))
        if self.shapes and block.endswith(b"\n"):
            found = self.shapes[0].lines(block, plain=is_plain(block, count))
            if len(found) == count:
                self.number += count
                self._all_of(self.shapes[0], found)
                return
        lines = block.split(b"\n")
        if lines[-1]:
            self.reader.trouble("truncated", self.name, "ends within a line.", "末行不完整。")
        else:
            lines.pop()
        self._one_by_one(lines)

    def _one_by_one(self, lines: Sequence[bytes]) -> None:
        """Sort the lines of a block by their shape; those that have none yet are read strictly, and may be the first of another."""
        found: dict[int, tuple[Shape, list[tuple[bytes, ...]]]] = {}
        for line in lines:
            self.number += 1
            for shape in self.shapes:
                values = shape.line(line + b"\n")
                if values is not None:
                    found.setdefault(id(shape), (shape, []))[1].append(values)
                    self._counted(int(values[shape.places[SEQ]]), 1)
                    break
            else:
                self._strictly(line)
        for shape, rows in found.values():
            self.sink.block(shape, rows)
        if found:  # the form that most lines had is tried first
            self.shapes.sort(key=lambda s: -len(found[id(s)][1]) if id(s) in found else 0)

    def _strictly(self, line: bytes) -> None:
        try:
            row = decode(line.decode("utf-8"))
        except UnicodeDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            what = said(error)
            self._trouble(f"line {self.number} is not readable as JSON: {what.en}.", f"第 {self.number} 行无法按 JSON 解析：{what.zh}。")
            return
        if not isinstance(row, dict):
            self._trouble(f"line {self.number} is not a JSON object.", f"第 {self.number} 行不是 JSON 对象。")
            return
        self._counted(row.get("seq"), 1)
        shape = shape_of(line + b"\n", row, self.wanted) if self.sink.row(row) and len(self.shapes) < MOST_SHAPES else None
        if shape is not None and SEQ in shape.places:  # a line without its number is no pattern for others
            self.shapes.insert(0, shape)

    def _all_of(self, shape: Shape, lines: Sequence[tuple[bytes, ...]]) -> None:
        seq = numbers([values[shape.places[SEQ]] for values in lines])
        wrong = np.flatnonzero(seq != np.arange(self.seen, self.seen + len(lines)))
        behind = int(wrong[0]) if len(wrong) else 0
        self._counted(int(seq[behind]), len(lines), behind)
        self.sink.block(shape, lines)

    def _counted(self, seq: Any, rows: int, behind: int = 0) -> None:
        """Check the number that came where `self.seen + behind` must stand, and count the rows."""
        expected = self.seen + behind
        if self.in_order and (seq != expected or isinstance(seq, bool)):
            self.in_order = False
            self.reader.trouble(
                "sequence",
                self.name,
                f"line {expected + 1} has seq {seq!r} where {expected} must stand: a line was lost, doubled or moved.",
                f"第 {expected + 1} 行 seq 为 {seq!r}，应为 {expected}：有记录丢失、重复或错位。",
            )
        self.seen += rows

    def _trouble(self, en: str, zh: str) -> None:
        self.reader.trouble("json", self.name, en, zh)


def column(shape: Shape, path: Path, columns: Sequence[Sequence[bytes]], count: int) -> Column:
    """Return a wanted number of all lines of a block; -1 where the shape has none (null)."""
    place = shape.places.get(path)
    return np.full(count, -1, dtype=np.int64) if place is None else numbers(columns[place])
