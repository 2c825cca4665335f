"""`quadgate worker`: the Celery worker of this node, in the foreground; scale-out is more of them."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from app.kit.i18n import N_


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker", help=N_("Run the worker of this node (QUADGATE_NODE) in the foreground."))(worker)


def worker() -> None:
    """Become the worker."""
    from app.settings import ROOT, settings
    from app.up.supervisor import worker_argv

    become(worker_argv(settings().node), ROOT)


def become(argv: list[str], folder: Path) -> None:
    """Become another program of ours, in the folder of the checkout."""
    os.chdir(folder)
    os.execv(argv[0], argv)  # noqa: S606 - our own interpreter
