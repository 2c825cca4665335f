"""`quadgate health`: is work done? For health checks of containers and service managers. Exit 0: yes; 65: no, and why."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from app.kit.terminal import say


class Part(StrEnum):
    """Whose health is asked for."""

    SERVICE = "service"
    WORKER = "worker"
    RUNNER = "runner"
    BEAT = "beat"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("health", help="Tell whether work gets done. Exit 0 when it does, 65 when not.")(health)


def health(
    part: Annotated[
        Part, typer.Argument(help="service: everything; worker: tasks of this node come back; runner: hosts can be started; beat: ticks are sent.")
    ] = Part.SERVICE,
) -> None:
    """Ask, print what was found as JSON, and say it by the exit code."""
    from app.engine import runner
    from app.ops import health as questions
    from app.settings import settings

    found: dict[str, Any]
    if part is Part.SERVICE:
        state = questions.look()
        found, good = state.json(), state.ready
    elif part is Part.RUNNER:
        good = runner.answers()
        found = {"runner": good}
    elif part is Part.BEAT:
        good = questions.ticks()
        found = {"beat": good}
    else:
        good = questions.node_beats(settings().node)
        found = {settings().node: good}
    say(json.dumps(found, ensure_ascii=False))
    raise typer.Exit(0 if good else 65)
