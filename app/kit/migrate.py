"""Bring a database to the present schema, from wherever the process was started: no alembic.ini, no working directory."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from app.kit.db import database_file, engine_for
from app.settings import ROOT, settings

MIGRATIONS = ROOT / "migrations"


def alembic_config(url: str) -> Config:
    """Return Alembic's configuration for a database URL."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["url"] = url  # not an option: ConfigParser would trip over a % of a password
    return config


def upgrade(url: str = "", revision: str = "head") -> str:
    """Apply all missing migrations; make the state directory first. Returns the revision that now stands.

    Two processes that start together wait for each other: the whole run is one write transaction on SQLite, and holds an
    advisory lock on PostgreSQL.
    """
    settings().state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    url = url or settings().database_url
    command.upgrade(alembic_config(url), revision)
    return current(url)


def current(url: str = "") -> str:
    """Return the revision of a database; empty when it has none, or does not exist: to look at one makes none."""
    url = url or settings().database_url
    if (file := database_file(url)) is not None and not file.exists():
        return ""
    with engine_for(url).connect() as connection:
        return MigrationContext.configure(connection).get_current_revision() or ""


def head() -> str:
    """Return the newest revision that this program knows."""
    return ScriptDirectory(str(MIGRATIONS)).get_current_head() or ""
