"""`quadgate serve`: the web server alone, in the foreground."""

from __future__ import annotations

from typing import Annotated

import typer

from app.kit.i18n import N_


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", help=N_("Run the web server alone, in the foreground."))(serve)


def serve(
    host: Annotated[str, typer.Option(help=N_("Address to listen on; the default is QUADGATE_WEB_HOST."))] = "",
    port: Annotated[int, typer.Option(help=N_("Port to listen on; the default is QUADGATE_WEB_PORT."))] = 0,
) -> None:
    """Serve until a signal comes."""
    from app.server import run
    from app.settings import settings
    from app.up.web import require_free

    where, at = host or settings().web_host, port or settings().web_port
    require_free(where, at)  # uvicorn would say it in English, and end with 1, which reads as a verdict
    run(where, at)
