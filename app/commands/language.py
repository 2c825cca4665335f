"""The language of what a command prints: --lang, else that of the terminal."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from app.kit.i18n import translate

KNOWN = ("en", "zh-CN")


def of_terminal() -> str:
    """Return zh-CN where LC_ALL, LC_MESSAGES or LANG asks for Chinese, else en."""
    asked = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "")
    return "zh-CN" if asked.startswith("zh") else "en"


def in_terminal(msgid: str, **params: Any) -> str:
    """Return a sentence of the catalogue in the language of the terminal."""
    return translate(msgid, of_terminal().replace("-", "_"), **params)


def say(msgid: str, **params: Any) -> None:
    """Print a sentence of the catalogue at once."""
    print(in_terminal(msgid, **params), flush=True)


def _known(value: str) -> str:
    if value not in KNOWN:
        raise typer.BadParameter(f"{value} is not one of {', '.join(KNOWN)}")
    return value


Language = Annotated[str, typer.Option("--lang", callback=_known, default_factory=of_terminal, show_default="as LANG says", help="en or zh-CN.")]
