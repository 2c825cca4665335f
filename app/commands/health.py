"""`quadgate health`: is work done? Exit 0: yes; 65: no, and why."""

from __future__ import annotations

import json

import typer

from app.kit.i18n import N_
from app.kit.terminal import say


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("health", help=N_("Tell whether work gets done, as /readyz does. Exit 0 when it does, 65 when not."))(health)


def health() -> None:
    """Ask, print what was found as JSON, and say it by the exit code."""
    from app.ops.health import look

    found = look()
    say(json.dumps(found.json(), ensure_ascii=False, indent=2))
    raise typer.Exit(0 if found.ready else 65)
