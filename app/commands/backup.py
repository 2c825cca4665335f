"""`quadgate backup` and `quadgate restore`: a verified copy of everything while the service runs, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.accounts.actor import command_line
from app.commands.language import in_terminal, of_terminal, say
from app.kit.i18n import N_
from app.kit.terminal import say as tell

NOT_WHOLE = 65


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup", help="Copy database, evidence and reports into a new folder while everything runs, and verify the copy.")(backup)
    app.command("restore", help="Bring a backup back into an empty state directory; what ran at its targets is adopted.")(restore)


def backup(
    folder: Annotated[Path, typer.Argument(help="A new folder, on another disk.")],
    with_credentials: Annotated[
        bool, typer.Option("--with-credentials", help="Copy the credentials of the targets too: keep the backup as safe.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Only verify the backup that lies there.")] = False,
) -> None:
    """Exit 0: whole and verified; 65: not, with a sentence for each reason."""
    from app.ops import backup as ops

    found = ops.verify(folder) if verify else ops.make(folder, credentials=with_credentials, actor=command_line())
    for problem in found.problems:
        tell(problem.in_language(of_terminal()), err=True)
    if found.problems:
        say(N_("The backup {folder} is NOT whole: {n} problems"), folder=folder, n=len(found.problems))
        raise typer.Exit(NOT_WHOLE)
    say(N_("The backup {folder} is whole: {n} files, audit chain to {head}"), folder=folder, n=found.files, head=found.note["audit_head"])
    if not (with_credentials or verify):
        say(N_("Credentials of the targets are not in it; --with-credentials adds them"))


def restore(folder: Annotated[Path, typer.Argument(help="The backup.", exists=True, file_okay=False)]) -> None:
    """Restore, then start the service as usual."""
    from app.ops.restore import restore as bring_back
    from app.settings import settings

    restored = bring_back(folder, actor=command_line())
    say(N_("Restored {n} files into {state}; audit chain whole to {head}"), n=restored.files, state=settings().state_dir, head=restored.audit_head)
    for attempt_id in restored.adopted:
        tell(in_terminal(N_("  goes on: attempt {id}"), id=attempt_id))
    say(N_("Stop the old controller for good before this one starts: targets refuse it from now on, but it would go on asking"))
