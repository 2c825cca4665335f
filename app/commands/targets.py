"""`quadgate targets remove ENGAGEMENT`: take everything of ours away from an engagement's targets, and say what is left where. Wipes: wipes.py."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from app.commands import wipes
from app.commands.language import ask, say
from app.engine.spoken import why_of
from app.kit.i18n import N_

HELP = N_(
    "End all jobs and engines of ours on the targets and remove our files. Exit 0: gone from every host; 65: something is left.\n\n"
    "Evidence that was collected stays with the service. While an attempt is going on nothing is removed."
)
NOT_CLEAN = 65  # EX_DATAERR: 1 to 4 are verdicts
LOOK_S = 0.5

commands = typer.Typer(no_args_is_help=True, help=N_("The hosts that engagements are tested on."))


def register(app: typer.Typer) -> None:
    """Add the commands below `targets`."""
    wipes.register(commands)
    app.add_typer(commands, name="targets")


@commands.command(help=HELP)
def remove(
    engagement: Annotated[str, typer.Argument(help=N_("The code of the engagement, e.g. HT-2026-01."))],
    yes: Annotated[bool, typer.Option("--yes", help=N_("Do not ask."))] = False,
) -> None:
    """Order the removal and follow it to its end."""
    from app.accounts.actor import command_line
    from app.engagements import repository
    from app.engine import removal
    from app.kit.db import read_session, write_session
    from app.kit.errors import NotFound, Refused

    with read_session() as s:
        found = repository.by_code(s, engagement)
        if found is None:
            raise NotFound("no_such_engagement", N_("There is no engagement {id}."), id=engagement)
        hosts = ", ".join(found.targets["hosts"])
    if not yes:
        if not sys.stdin.isatty():
            raise Refused("not_confirmed", N_("There is no terminal to ask at; give --yes to remove everything from {hosts}."), hosts=hosts)
        ask(N_("End what runs for {code} on {hosts}, and remove its files there?"), code=found.code, hosts=hosts)
    with write_session() as s:
        order = removal.begin(s, engagement_id=found.id, actor=command_line())
    say(N_("Removing from {hosts} (order {id})"), hosts=hosts, id=order.id)
    while order.finished_at is None:
        order = removal.go_on(order.id, command_line())
        if order.finished_at is None:
            time.sleep(LOOK_S)
    report = order.report or {"hosts": {}}
    lines = {"removed": N_("{host}: removed, {root}"), "left": N_("{host}: LEFT, {root}: {why}"), "unknown": N_("{host}: not known, {root}: {why}")}
    for host, told in report["hosts"].items():
        say(lines[told["state"]], host=host, root=told["root"], why=why_of(told) or "-")
    raise typer.Exit(0 if removal.clean(report) else NOT_CLEAN)
