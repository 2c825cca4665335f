"""`quadgate audit verify`: walk the audit chain. Exit 0: whole; 65: not (1 to 4 are verdicts)."""

from __future__ import annotations

import json
import re
from typing import Annotated

import typer

from app.audit.chain import Anchor, head, verify
from app.commands.language import Language, in_terminal
from app.kit.db import read_session
from app.kit.i18n import N_, translate

NOT_WHOLE = 65  # EX_DATAERR

commands = typer.Typer(no_args_is_help=True, help=N_("The audit chain."))


def register(app: typer.Typer) -> None:
    """Add the commands below `audit`."""
    app.add_typer(commands, name="audit")


@commands.command(name="verify", help=N_("Walk the whole chain and say what does not fit. Exit 0: whole; 65: not."))
def verify_chain(
    anchor: Annotated[
        str, typer.Option(help=N_("SEQ:sha256:HASH as printed in a report or by `audit head`; shows a cut-off or rewritten end."))
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help=N_("Print JSON."))] = False,
    *,
    language: Language,
) -> None:
    """Verify, against an anchor where one is given."""
    known = _anchor(anchor) if anchor else None
    with read_session() as s:
        check = verify(s, known)
    if as_json:
        found = {"ok": check.ok, "rows": check.rows, "head": f"{check.head.seq}:{check.head.hash}", "problems": [p.json() for p in check.problems]}
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        for problem in check.problems:
            print(problem.in_language(language))
        told = N_("{rows} rows, head {head}, whole") if check.ok else N_("{rows} rows, head {head}, NOT WHOLE")
        print(translate(told, language, rows=check.rows, head=f"{check.head.seq}:{check.head.hash}"))
    raise typer.Exit(0 if check.ok else NOT_WHOLE)


@commands.command(name="head", help=N_("Print the present end of the chain: keep it elsewhere, and `audit verify --anchor` will show a cut-off end."))
def show_head() -> None:
    """Print what --anchor takes."""
    with read_session() as s:
        end = head(s)
    print(f"{end.seq}:{end.hash}")


def _anchor(text: str) -> Anchor:
    match = re.fullmatch(r"(\d+):(sha256:[0-9a-f]{64})", text.strip())
    if match is None:
        raise typer.BadParameter(in_terminal(N_("an anchor looks like 123:sha256:0123... (64 hexadecimal digits)")), param_hint="--anchor")
    return Anchor(int(match[1]), match[2])
