"""`quadgate db upgrade`: bring the database to this program's schema."""

from __future__ import annotations

import typer

from app.commands.language import in_terminal, say
from app.kit import migrate
from app.kit.i18n import N_

commands = typer.Typer(no_args_is_help=True, help=N_("The database."))


def register(app: typer.Typer) -> None:
    """Add the commands below `db`."""
    app.add_typer(commands, name="db")


@commands.command(help=N_("Apply all missing migrations; without any, nothing is changed."))
def upgrade() -> None:
    """Upgrade, and print the revision."""
    say(N_("The database stands at revision {revision}"), revision=migrate.upgrade())


@commands.command(help=N_("Print the revision of the database and the newest that this program knows."))
def current() -> None:
    """Print both revisions."""
    database = migrate.current() or in_terminal(N_("empty"))
    say(N_("database {database}, program {program}"), database=database, program=migrate.head())
