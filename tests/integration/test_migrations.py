"""The schema that the migrations make is the schema that the models describe."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

import app.accounts.models
import app.api.models
import app.approvals.models
import app.attempts.models
import app.audit.models
import app.engagements.models
import app.engine.models
import app.evidence.models
import app.packing.models
import app.plans.models
import app.reports.models
import app.wipes.models  # noqa: F401
from app.kit.db import Base, engine_for
from app.kit.migrate import current, head, upgrade
from app.settings import settings


def test_the_migrations_make_exactly_the_tables_that_the_models_describe(state: Path) -> None:
    with engine_for(settings().database_url).connect() as connection:
        difference = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), Base.metadata)
    assert difference == []


def test_it_stands_at_the_newest_revision_and_upgrading_again_changes_nothing(state: Path) -> None:
    assert current() == head() != ""
    assert upgrade() == head()


def test_it_needs_no_working_directory_and_makes_the_state_directory_private(state: Path, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir("/")
    fresh = tmp_path / "new" / "state"
    monkeypatch.setenv("QUADGATE_STATE_DIR", str(fresh))
    settings.cache_clear()
    assert upgrade() == head()
    assert stat.S_IMODE(os.stat(fresh).st_mode) == 0o700
    settings.cache_clear()


@pytest.mark.sqlite
def test_every_constraint_has_a_name_so_that_sqlite_can_drop_it_later(state: Path) -> None:
    with engine_for(settings().database_url).connect() as connection:
        tables = connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")).fetchall()
    unnamed = [
        (name, line.strip())
        for name, sql in tables
        if name != "alembic_version"
        for line in sql.splitlines()
        if line.strip().startswith(("PRIMARY KEY", "FOREIGN KEY", "UNIQUE", "CHECK"))
    ]
    assert unnamed == []
