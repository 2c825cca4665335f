"""Whose file is it: what a file is that the reader which was asked for does not find its own format in."""

from __future__ import annotations

from dataclasses import replace

from gates.model import Problem, Reading
from gates.readers.registry import READERS, read
from gates.text import Text

MOST = 4 * 2**20  # bytes of a file that every reader is asked about: the outputs of nearly all tools are far smaller
UNTOLD = frozenset({"empty", "not_text", "too_large", "unknown_tool", "unreadable"})  # nobody can tell whose such a file is
BROKEN = frozenset({"not_json", "not_csv", "truncated"})  # it says itself why nothing of the format is there
_ANOTHER = Text(
    "Nothing of the format of {name} was found. The reader {others} reads this file without a problem: did you mean that?",
    "未找到 {name} 格式的任何内容。读取器 {others} 能够完整读取该文件：是否应使用该读取器？",
)
_OTHERS = Text(
    "The file is not whole as an output for {name}. The reader {others} reads it without a problem: did you mean that?",
    "该文件作为 {name} 的输出并不完整。读取器 {others} 能够完整读取该文件：是否应使用该读取器？",
)
_NOTHING = Text("Nothing of the format of {name} was found ({reads}).", "未找到 {name} 格式的任何内容（{reads}）。")


def read_or_recognise(name: str, data: bytes) -> Reading:
    """Return what a reader makes of a file; before its problems stands that nothing of its format was found, and which reader's the file is."""
    reading = read(name, data)
    if not reading.problems or {p.code for p in reading.problems} & UNTOLD:
        return reading
    others = recognised_by(data, name)
    if others:
        text = _OTHERS if reading.observations else _ANOTHER
        problem = Problem("other_tool", text.fill(name=name, others=Text(" or ".join(others), " 或 ".join(others))))
    elif not reading.observations and not {p.code for p in reading.problems} & BROKEN:
        problem = Problem("nothing_found", _NOTHING.fill(name=name, reads=READERS[name].reads))
    else:
        return reading
    return replace(reading, problems=(problem, *(p for p in reading.problems if p.code != problem.code)))


def recognised_by(data: bytes, but: str) -> list[str]:
    """Return the names of the readers, but for one, that read a file without a problem."""
    return [] if len(data) > MOST else [name for name in READERS if name != but and not read(name, data).problems]
