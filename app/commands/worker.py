"""`quadgate worker` and `quadgate beat`: the Celery worker of this node, and the scheduler, in the foreground; scale-out is more workers."""

from __future__ import annotations

import os
from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker", help="Run the worker of this node (QUADGATE_NODE) in the foreground.")(worker)
    app.command("beat", help="Run the scheduler in the foreground; a second one does no harm.")(beat)


def worker() -> None:
    """Become the worker."""
    from app.settings import ROOT, settings
    from app.up.supervisor import worker_argv

    _become(worker_argv(settings().node), ROOT)


def beat() -> None:
    """Become the scheduler."""
    from app.settings import ROOT, settings
    from app.up.supervisor import beat_argv

    _become(beat_argv(settings().state_dir), ROOT)


def _become(argv: list[str], folder: Path) -> None:
    os.chdir(folder)
    os.execv(argv[0], argv)  # noqa: S606 - our own interpreter
