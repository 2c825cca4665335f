"""Printing what others wrote: a file name, a serial or a YAML key must not steer the terminal of the person who reads it."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from types import FrameType

from rich.cells import cell_len

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return the text with every control character, direction mark and half character written out, e.g. `\\x1b`."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str = "", *, err: bool = False) -> None:
    """Print one text to a person."""
    print(printable(text), file=sys.stderr if err else sys.stdout)


def padded(text: str, cells: int) -> str:
    """Return a text filled up to a width of a terminal's columns, of which a Chinese character takes two."""
    return text + " " * max(0, cells - cell_len(text))


def on_end(handler: Callable[[int, FrameType | None], object]) -> None:
    """Let one handler take all that ends a program from outside: Ctrl-C, a service manager, a terminal that goes away.

    Where the caller asked to outlive the terminal (nohup), it does.
    """
    for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if sign is not signal.SIGHUP or signal.getsignal(sign) is not signal.SIG_IGN:
            signal.signal(sign, handler)


def interrupt_once() -> None:
    """Let the first thing that ends a program from outside raise KeyboardInterrupt, and no later one.

    The handler itself sees to it: whoever has to clean up may be interrupted on the first line of doing so, but not twice.
    """

    def first(_sign: int, _frame: FrameType | None) -> None:
        on_end(unheard)
        raise KeyboardInterrupt

    on_end(first)


def unheard(_sign: int, _frame: FrameType | None) -> None:
    """Do nothing. Not SIG_IGN: programs that are started would inherit that, and could not be interrupted."""
