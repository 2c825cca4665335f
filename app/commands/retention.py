"""`quadgate retention`: say what the policy takes away, and with --apply take it away."""

from __future__ import annotations

from typing import Annotated

import typer

from app.accounts.actor import command_line
from app.commands.language import in_terminal, say
from app.kit.db import read_session
from app.kit.i18n import N_
from app.kit.terminal import say as tell

KINDS = {
    "events": N_("attempt {id}: {n} events and live samples"),
    "evidence": N_("attempt {id}, never judged nor counted: {n} evidence files, {size} bytes"),
    "orphans": N_("{n} stored files that nothing refers to, {size} bytes"),
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("retention", help=N_("Say what the retention policy takes away; --apply takes it away. Signed reports lose nothing."))(retention)


def retention(apply: Annotated[bool, typer.Option("--apply", help=N_("Take it away, with an audit row each."))] = False) -> None:
    """List by default, remove with --apply."""
    from app.ops import janitor
    from app.ops import retention as ops
    from app.settings import settings

    if apply:
        found = ops.apply(actor=command_line())
        freed = janitor.sweep() if settings().runs_dir.is_dir() else 0
    else:
        with read_session() as s:
            found, freed = ops.plan(s), 0
    for removal in found:
        tell("  " + in_terminal(KINDS[removal.kind], id=removal.attempt_id, n=removal.count, size=removal.size))
    if apply:
        say(N_("Taken away: {n} entries; {size} bytes of run directories were cleared"), n=len(found), size=freed)
    else:
        say(N_("{n} entries would be taken away. Nothing was changed; --apply takes them away"), n=len(found))
