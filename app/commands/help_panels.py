"""The panels of a help in another language: titles, and lines that end where Chinese may end. Slow to import, for Typer's rich module is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rich.cells import cell_len
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.containers import Lines
from rich.text import Text
from typer import rich_utils

from app.commands.language import in_terminal
from app.kit.i18n import N_

TITLES = {  # of typer.rich_utils
    "ARGUMENTS_PANEL_TITLE": N_("Arguments"),
    "OPTIONS_PANEL_TITLE": N_("Options"),
    "COMMANDS_PANEL_TITLE": N_("Commands"),
    "DEFAULT_STRING": N_("[default: {}]"),
    "ENVVAR_STRING": N_("[env var: {}]"),
    "REQUIRED_LONG_STRING": N_("[required]"),
}
_WIDE = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60"
_OPEN, _CLOSE = "（「『《“‘", "）」』》”’，。、；：！？…"
# What must stay together: a wide character or a word, with the marks that may not begin or end a line, and the space behind it.
_UNIT = re.compile(rf"[{_OPEN}]*(?:[^\s{_WIDE}{_OPEN}{_CLOSE}]+|[{_WIDE}]?)[{_CLOSE}]*\s*")


@contextmanager
def translated() -> Iterator[None]:
    """Lend Typer its titles in the language of the terminal, and a highlighter whose texts break where Chinese may break."""
    lent = {name: in_terminal(msgid) for name, msgid in TITLES.items()} | {"highlighter": _Highlighter()}
    before = {name: getattr(rich_utils, name) for name in lent}
    try:
        for name, value in lent.items():
            setattr(rich_utils, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(rich_utils, name, value)


def breaks(line: str, width: int) -> list[int]:
    """Return the offsets at which a line is broken into lines of at most `width` cells: between words, and between Chinese characters.

    rich breaks at spaces only, so a Chinese sentence is one long word to it, which it cuts off with an ellipsis.
    """
    found: list[int] = []
    used = 0
    for unit in _UNIT.finditer(line):
        for offset, part in _parts(unit, width):
            needed = cell_len(part.rstrip())
            if used and used + needed > width:
                found.append(offset)
                used = 0
            used += cell_len(part)
    return found


def _parts(unit: re.Match[str], width: int) -> Iterator[tuple[int, str]]:
    """Yield a unit with its offset; one that is longer than a line, character by character."""
    if cell_len(unit[0].rstrip()) <= width:
        yield unit.start(), unit[0]
    else:
        yield from enumerate(unit[0], unit.start())


class _Text(Text):
    """A text that rich lays out by `breaks`."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        if no_wrap or self.no_wrap:
            return super().wrap(console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=no_wrap)
        lines = Lines()
        for line in self.split(allow_blank=True):
            for part in line.divide(breaks(line.plain, width)):
                part.rstrip_end(width)
                lines.append(part)
        return lines


class _Highlighter(rich_utils.OptionHighlighter):
    """Typer's highlighter of help texts and options, which every text of a help goes through."""

    def __call__(self, text: str | Text) -> Text:
        done = super().__call__(text)
        return _Text(done.plain, done.style, spans=done.spans)
