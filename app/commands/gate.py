"""`quadgate gate show G3`: a gate's checks and claims as a table, from the declarations that the judge itself uses."""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.commands.help import filled
from app.commands.language import Language, LanguageOption, in_terminal
from app.commands.plan import read_or_refuse
from app.kit.i18n import N_
from app.kit.terminal import say
from gates.describe import claims_table, document, table
from gates.plan import parse_plan
from gates.registry import GATES

WIDE, FEW, IN_A_FILE = 180, 5, 600  # columns of a terminal that carry the table; columns of a table that always fit; width without a terminal
INDENT = 4


def register(app: typer.Typer) -> None:
    """Add the group `gate`."""
    gate = typer.Typer(no_args_is_help=True, help=N_("The four gates."))
    gate.callback()(lambda: None)
    gate.command(
        "show",
        help=N_("Show every check of a gate with its limit under a plan (the default plan when none is given), and its claims of validity."),
    )(show)
    app.add_typer(gate, name="gate")


def show(
    gate: Annotated[str, typer.Argument(help=filled(N_("One of {gates}."), gates=", ".join(GATES)))],
    plan: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, readable=True, help=N_("YAML: differences from the default plan, or an engagement file.")),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print JSON."))] = False,
    *,
    language: Language,
    older: LanguageOption = None,
) -> None:
    """Print the declarations of a gate."""
    name, language = gate.upper(), older or language
    if name not in GATES:
        raise typer.BadParameter(in_terminal(N_("there is no gate {gate}; known: {known}"), gate=repr(gate), known=", ".join(GATES)))
    agreed = read_or_refuse(plan, language, as_json=as_json) if plan is not None else parse_plan()
    if as_json:
        typer.echo(json.dumps(document(name, agreed), ensure_ascii=False))
        return
    say(f"{name} {GATES[name].title.in_language(language)}")
    say(agreed.hash)
    _print(*table(name, agreed, language))
    heads, rows = claims_table(name, agreed, language)
    if rows:
        _print(heads, rows)


def _print(heads: list[str], rows: list[list[str]]) -> None:
    """Print a table where it fits, and in a file, with every column; where it would be read on a narrower terminal, one block a row."""
    columns = seen_on()
    console = Console(highlight=False, markup=False, emoji=False, width=columns or IN_A_FILE)
    if columns is not None and columns < WIDE and len(heads) > FEW:
        for row in rows:
            told = "; ".join(f"{head} {cell}" for head, cell in zip(heads[2:], row[2:], strict=True) if cell != "-")
            console.print(Text(f"{row[0]}  {row[1]}", overflow="fold"))
            console.print(Padding(Text(told, overflow="fold"), (0, 0, 0, INDENT)))
        return
    shown = Table(box=None, pad_edge=False)
    for head in heads:
        shown.add_column(head, overflow="fold", no_wrap=columns is None)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)


def seen_on() -> int | None:
    """Return the columns of the terminal that the output is read on, also through a pipe to a pager; None where it goes into a file.

    COLUMNS of the environment says it for all who ask.
    """
    try:
        if stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
            return None
    except (OSError, ValueError):  # no file at all: whoever called us reads it
        pass
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    for stream in (1, 2, 0):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or None
    return None
