"""`quadgate restore`: bring a backup back, here or on another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.accounts.actor import command_line
from app.commands.language import in_terminal, of_terminal, say
from app.kit.i18n import N_
from app.kit.terminal import say as tell


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("restore", help=N_("Bring a backup back into an empty state directory; what ran at its targets is adopted."))(restore)


def restore(
    folder: Annotated[Path, typer.Argument(help=N_("The backup."), exists=True, file_okay=False)],
    accept_damage: Annotated[
        bool, typer.Option("--accept-damage", help=N_("Restore the rest of a damaged backup; each file that is lost is named and recorded."))
    ] = False,
) -> None:
    """Restore, then start the service as usual."""
    from app.ops.restore import restore as bring_back
    from app.settings import settings

    restored = bring_back(folder, actor=command_line(), accept_damage=accept_damage)
    for sentence in restored.damage:
        tell(sentence.in_language(of_terminal()), err=True)
    say(N_("Restored {n} files into {state}; audit chain whole to {head}"), n=restored.files, state=settings().state_dir, head=restored.audit_head)
    for attempt_id in restored.adopted:
        tell(in_terminal(N_("  goes on: attempt {id}"), id=attempt_id))
    say(N_("Stop the old controller for good before this one starts: targets refuse it from this one's first question on, and not before"))
