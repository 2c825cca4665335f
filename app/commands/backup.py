"""`quadgate backup`: a verified copy of everything while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.accounts.actor import command_line
from app.commands.language import of_terminal, say
from app.kit.i18n import N_
from app.kit.terminal import say as tell

NOT_WHOLE = 65


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("backup", help=N_("Copy database, evidence and reports into a new folder while everything runs, and verify the copy."))(backup)


def backup(
    folder: Annotated[Path, typer.Argument(help=N_("A new folder, on another disk."))],
    with_credentials: Annotated[
        bool, typer.Option("--with-credentials", help=N_("Copy the credentials of the targets too: keep the backup as safe."))
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help=N_("Only verify the backup that lies there."))] = False,
) -> None:
    """Exit 0: whole and verified; 65: not, with a sentence for each reason."""
    from app.ops import backup as ops

    found = ops.verify(folder) if verify else ops.make(folder, credentials=with_credentials, actor=command_line())
    for problem in found.problems:
        tell(problem.in_language(of_terminal()), err=True)
    for warning in found.warnings:
        tell(warning.in_language(of_terminal()), err=True)
    if found.problems:
        say(N_("The backup {folder} is NOT whole: {n} problems"), folder=folder, n=len(found.problems))
        raise typer.Exit(NOT_WHOLE)
    say(N_("The backup {folder} is whole: {n} files, audit chain to {head}"), folder=folder, n=found.files, head=found.note["audit_head"])
    if found.warnings:
        say(N_("{n} damaged files are named above and left out: nothing refers to them"), n=len(found.warnings))
    if not (with_credentials or verify):
        say(N_("Credentials of the targets are not in it; --with-credentials adds them"))
