"""`quadgate up`: everything on one machine, until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up", help="Start broker, worker, scheduler and web server on this machine; Ctrl-C stops all of it.")(up)


def up(web: Annotated[bool, typer.Option(help="Serve the web pages and the REST interface.")] = True) -> None:
    """Run the supervisor until a signal comes."""
    from app.settings import settings
    from app.up import Supervisor

    over = threading.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: over.set())
    supervisor = Supervisor()
    print(f"Starting; state and logs in {settings().state_dir}")
    supervisor.start(web=web)
    try:
        print(f"Ready: http://{settings().web_host}:{settings().web_port}" if web else "Ready.", "Ctrl-C stops everything.", flush=True)
        over.wait()
        print("Stopping: running attempts are canceled, then everything ends.", flush=True)
    finally:
        supervisor.stop()
