"""The language of what a command prints: --lang, in any usual spelling, else that of the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from app.kit.i18n import N_, known, translate
from app.kit.words import word

SPELLED = {"en": "en", "zh": "zh-CN", "zh-CN": "zh-CN", "zh_CN": "zh-CN"}
AS_LANG = N_("as LANG says")
YES = ("y", "yes", "是")


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


def in_words(kind: str, value: str | None, language: str) -> str:
    """Return a value of a vocabulary (`app.kit.words`) in a language; in English it is a word already. A dash for none."""
    if value is None:
        return "-"
    return value if known(language) == "en" else word(kind, value, language)


def ask(msgid: str, **params: Any) -> None:
    """Ask a question of the catalogue at the terminal. Raises typer.Abort unless the answer is a yes."""
    answer = typer.prompt(f"{in_terminal(msgid, **params)} [y/N]", default="", show_default=False)
    if answer.strip().lower() not in YES:
        raise typer.Abort


def not_one_of(value: str, known: Iterable[str], option: str | None = None) -> typer.BadParameter:
    """Return the usage error of a value that is none of those that an option takes."""
    return typer.BadParameter(in_terminal(N_("{value} is not one of {known}"), value=value, known=", ".join(known)), param_hint=option)


def spelled(value: str | None) -> str | None:
    """Return en or zh-CN for any spelling of an option's value; None for none. Raises the usage error for another language."""
    if value is not None and value not in SPELLED:
        raise not_one_of(value, SPELLED)
    return value if value is None else SPELLED[value]


def _named(option: str) -> Any:
    """Return an older name of --lang that is still taken and shown nowhere."""
    return typer.Option(option, callback=spelled, hidden=True, help=N_("en or zh."))


Language = Annotated[str, typer.Option("--lang", callback=spelled, default_factory=of_terminal, show_default=AS_LANG, help=N_("en or zh."))]
LanguageOption = Annotated[str | None, _named("--language")]
LocaleOption = Annotated[str | None, _named("--locale")]
