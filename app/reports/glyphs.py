"""Which characters the report's font can print, read from the font file itself, and text made safe for it.

Under PDF/A a character without a glyph stops the compiler. Text of people is therefore looked at before: what the font lacks, and
what would be invisible or turn the line around (control and format characters), is printed as its code point, [U+1F680].
"""

from __future__ import annotations

import re
import struct
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path

import manimgx_fonts_cjk
import typst

FAMILY = "Noto Sans CJK SC"
LONGEST = 600  # characters of one text printed in full; the attached data holds the rest
_RUN = re.compile(r"[!-~]{25,}")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|ms|s|h|min|tok/s|pp|B|kB|MB|GB|TB|PB|UTC)(?![A-Za-z0-9]))")
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def font_dir() -> Path:
    """Return the folder of the only fonts that reports are set in."""
    return Path(manimgx_fonts_cjk.__file__).parent


@lru_cache(maxsize=1)
def fonts() -> typst.Fonts:
    """Return those fonts, found once a process; neither system fonts nor the compiler's own are looked at."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[str(font_dir())])


@lru_cache(maxsize=1)
def covered() -> tuple[list[int], list[int]]:
    """Return the code points of the font as sorted ranges: (starts, ends)."""
    face = next(f for f in fonts().fonts() if f.family == FAMILY)
    path = Path(face.path) if face.path else next(p for p in font_dir().iterdir() if p.suffix in (".ttc", ".otf", ".ttf"))
    ranges = sorted(_ranges(path.read_bytes(), face.index))
    return [a for a, _ in ranges], [b for _, b in ranges]


def has_glyph(char: str) -> bool:
    """Tell whether the font can print a character."""
    starts, ends = covered()
    at = bisect_right(starts, ord(char)) - 1
    return at >= 0 and ord(char) <= ends[at]


def printable(text: str, cut: str = "", longest: int = LONGEST) -> str:
    """Return text as it can be printed: every character visible, long words breakable, very long texts cut with the sentence `cut`.

    `cut` may hold `{n}`, the number of characters of the whole. The text stays what was written; nothing in it is ever markup.
    """
    whole = len(text)
    kept = text if whole <= longest else text[:longest]
    shown = "".join(_visible(char) for char in kept)
    if whole > longest:
        shown += cut.replace("{n}", str(whole))
    return _RUN.sub(lambda match: _breakable(match.group()), _UNIT.sub("\u00a0", shown))


def _visible(char: str) -> str:
    if char in "\n\r\t":
        return " "
    if unicodedata.category(char) in _HIDDEN or not has_glyph(char):
        return f"[U+{ord(char):04X}]"
    return char


def _breakable(word: str) -> str:
    """Allow a break after separators, and at least at every 24th character, by zero-width spaces."""
    parts = [piece[i : i + 24] for piece in re.split(r"(?<=[/_.:\-=,;])", word) if piece for i in range(0, len(piece), 24)]
    return "\u200b".join(parts)


def _ranges(data: bytes, index: int) -> list[tuple[int, int]]:
    """Return the ranges of the best Unicode cmap (format 12, else 4) of one face of a font file or collection."""
    start = 0
    if data[:4] == b"ttcf":
        (start,) = struct.unpack_from(">I", data, 12 + 4 * index)
    (tables,) = struct.unpack_from(">H", data, start + 4)
    for i in range(tables):
        tag, _, offset, _ = struct.unpack_from(">4sIII", data, start + 12 + 16 * i)
        if tag == b"cmap":
            return _cmap(data, offset)
    raise ValueError("the report font holds no table of characters (cmap)")


def _cmap(data: bytes, table: int) -> list[tuple[int, int]]:
    (count,) = struct.unpack_from(">H", data, table + 2)
    found = {}
    for i in range(count):
        platform, encoding, offset = struct.unpack_from(">HHI", data, table + 4 + 8 * i)
        (kind,) = struct.unpack_from(">H", data, table + offset)
        if (platform, encoding) in ((3, 10), (3, 1), (0, 3), (0, 4), (0, 6)) and kind in (4, 12):
            found[kind] = table + offset
    if 12 in found:
        at = found[12]
        (groups,) = struct.unpack_from(">I", data, at + 12)
        return [struct.unpack_from(">II", data, at + 16 + 12 * i) for i in range(groups)]
    at = found[4]
    (double,) = struct.unpack_from(">H", data, at + 6)
    n = double // 2
    ends = struct.unpack_from(f">{n}H", data, at + 14)
    starts = struct.unpack_from(f">{n}H", data, at + 16 + double)
    return [(a, b) for a, b in zip(starts, ends, strict=True) if a != 0xFFFF]
