"""`quadgate runner`: the service in which playbook hosts live, so that replacing a worker ends no playbook."""

from __future__ import annotations

import logging
from pathlib import Path

import typer

from app.kit.errors import BadInput
from app.kit.i18n import N_
from app.kit.terminal import on_end

log = logging.getLogger("quadgate.runner")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("runner", help=N_("Start playbook hosts for the workers of this node (QUADGATE_RUNNER_SOCKET) until a signal comes."))(runner)


def runner() -> None:
    """Serve until a signal comes and the last playbook has ended."""
    from app.engine.runner import Runner
    from app.kit import logs
    from app.settings import settings

    if not settings().runner_socket:
        raise BadInput("no_socket", N_("Set QUADGATE_RUNNER_SOCKET to the path of the socket on which workers and runner meet."))
    logs.configure(settings().log_format)
    service = Runner(Path(settings().runner_socket))
    on_end(lambda *_: service.over.set())
    log.info("playbook hosts are started on %s; a signal ends this when the last of them has ended", settings().runner_socket)
    service.serve()
