"""`quadgate beat`: the scheduler, in the foreground. It sends one tick again and again; a second one does no harm."""

from __future__ import annotations

import typer

from app.commands.worker import become
from app.kit.i18n import N_


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("beat", help=N_("Run the scheduler in the foreground; a second one does no harm."))(beat)


def beat() -> None:
    """Become the scheduler."""
    from app.settings import ROOT, settings
    from app.up.supervisor import beat_argv

    become(beat_argv(settings().state_dir), ROOT)
