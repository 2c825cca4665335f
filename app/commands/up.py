"""`quadgate up`: everything on one machine, until Ctrl-C."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Annotated

import typer

from app.commands.language import of_terminal, say
from app.kit import terminal
from app.kit.i18n import N_
from app.kit.terminal import on_end


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("up", help=N_("Start broker, worker, scheduler and web server on this machine; Ctrl-C stops all of it."))(up)


def up(
    web: Annotated[bool, typer.Option(help=N_("Serve the web pages and the REST interface."))] = True,
    leave_running: Annotated[
        bool, typer.Option("--leave-running", help=N_("Ctrl-C cancels no attempt and leaves the jobs on their targets alone: for a hand-over."))
    ] = False,
) -> None:
    """Run the supervisor until a signal comes."""
    from app.accounts import repository
    from app.kit.db import read_session
    from app.settings import settings
    from app.up import Supervisor

    over = threading.Event()
    on_end(lambda *_: over.set())
    supervisor = Supervisor()
    say(N_("Starting; state and logs are in {folder}"), folder=settings().state_dir)
    supervisor.start(web=web)
    try:
        if web:
            say(N_("Ready: http://{host}:{port} (Ctrl-C stops everything)"), host=settings().web_host, port=settings().web_port)
        else:
            say(N_("Ready (Ctrl-C stops everything)"))
        with read_session() as s:
            if not repository.all_users(s):
                say(N_("Nobody can sign in yet: add people in another terminal, see quadgate user add --help"))
        over.wait()
        with suppress(OSError):  # the terminal may be gone
            if leave_running:
                say(N_("Stopping: jobs go on on their targets; whoever starts with this state, or a copy of it, goes on with them"))
            else:
                say(N_("Stopping: running attempts are canceled, then everything ends"))
    finally:
        supervisor.stop(leave=leave_running, tell=lambda text: terminal.say(text.in_language(of_terminal())))
    with suppress(OSError):
        say(N_("Stopped"))
