"""`quadgate db upgrade`: bring the database to this program's schema."""

from __future__ import annotations

import typer

from app.kit import migrate

commands = typer.Typer(no_args_is_help=True, help="The database.")


def register(app: typer.Typer) -> None:
    """Add the commands below `db`."""
    app.add_typer(commands, name="db")


@commands.command()
def upgrade() -> None:
    """Apply all missing migrations; without any, nothing is changed."""
    print(f"the database stands at revision {migrate.upgrade()}")


@commands.command()
def current() -> None:
    """Print the revision of the database and the newest that this program knows."""
    print(f"database {migrate.current() or 'empty'}, program {migrate.head()}")
