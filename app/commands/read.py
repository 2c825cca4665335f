"""`quadgate read TOOL FILE`: what a reader sees in one tool output. Exit 0 complete, 3 incomplete or not parsed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from app.commands.language import Language, in_terminal
from app.kit.i18n import N_
from app.kit.terminal import say
from gates.model import Problem, Reading
from gates.readers.recognise import read_or_recognise
from gates.readers.registry import READERS
from gates.system_words import said
from gates.text import Text

INCOMPLETE = 3


def register(app: typer.Typer) -> None:
    """Add the command `read`."""
    app.command(name="read", help=N_("Show the observations of one tool output. Exit 0: complete; 3: incomplete or not parsed."))(command)


def command(
    tool: Annotated[str, typer.Argument(help=N_("Name of the reader, see --list."))] = "",
    file: Annotated[Path | None, typer.Argument(help=N_("The tool's output; - reads standard input."))] = None,
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print JSON."))] = False,
    list_readers: Annotated[bool, typer.Option("--list", help=N_("List the readers."))] = False,
    *,
    language: Language,
) -> None:
    """Read one file and print observations and problems."""
    if list_readers:
        _print_list(as_json, language)
        return
    if not tool or file is None:
        raise typer.BadParameter(in_terminal(N_("name a TOOL and a FILE, or give --list")))
    if tool not in READERS:
        raise typer.BadParameter(in_terminal(N_("there is no reader {tool}; known: {known}"), tool=repr(tool), known=", ".join(READERS)))
    reading = _read(tool, file)
    if as_json:
        print(json.dumps(_document(reading), ensure_ascii=False, indent=2))
    else:
        _print_lines(reading, language)
    if reading.problems:
        raise typer.Exit(INCOMPLETE)


def _read(tool: str, file: Path) -> Reading:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        text = Text("{file} cannot be read: {why}.", "无法读取 {file}：{why}。").fill(file=file, why=said(error))
        return Reading(problems=(Problem("unreadable", text),))
    return read_or_recognise(tool, data)


def _document(reading: Reading) -> dict[str, object]:
    problems = [{"code": p.code, "message": p.message.en, "message_zh": p.message.zh} for p in reading.problems]
    return {"observations": [o.json() for o in reading.observations], "problems": problems}


def _print_lines(reading: Reading, language: str) -> None:
    for o in reading.observations:
        labels = " ".join(f"{k}={v}" for k, v in o.labels.items())
        say(f"{o.quantity:32} {o.json()['value']} {o.unit if o.unit not in ('text', '1') else ''}  {labels}".rstrip())
    for p in reading.problems:
        say(f"! {p.code}: {p.message.in_language(language)}", err=True)


def _print_list(as_json: bool, language: str) -> None:
    if as_json:
        print(json.dumps([{"tool": s.name, "reads": s.reads.json()} for s in READERS.values()], ensure_ascii=False, indent=2))
        return
    for spec in READERS.values():
        print(f"{spec.name:20} {spec.reads.in_language(language)}")
