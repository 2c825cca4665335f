"""A database that was filled at any earlier revision comes up to the newest with every row that it had, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, Boolean, Connection, Date, DateTime, Integer, MetaData, Table, func, insert, select, text

from app.attempts.revisions import substance
from app.kit.db import Base, engine_for
from app.kit.migrate import MIGRATIONS, head, upgrade
from tests import postgres
from tests.integration import test_migrations  # noqa: F401 - imports every model
from tests.written_json import written

REVISIONS = [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()][::-1]
ROWS = 3
BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with postgres.server() as running:
        yield running


def value_of(table: Table, name: str, n: int, dialect: str) -> Any:
    """Return the value of a column in row n: of its type, and different in each row."""
    column = table.c[name]
    for key in column.foreign_keys:
        other = key.column
        return value_of(other.table, other.name, n, dialect)
    if isinstance(column.type, JSON):
        values = written().get((table.name, name)) or [None]
        return values[n % len(values)] if column.nullable else next(value for value in (*values[n:], *values) if value is not None)
    if isinstance(column.type, Boolean):
        return bool(n % 2)
    if isinstance(column.type, Integer):
        return n + 1
    if isinstance(column.type, DateTime):
        at = BEGAN + timedelta(hours=n, microseconds=1)
        return at if dialect == "postgresql" else at.replace(tzinfo=None)
    if isinstance(column.type, Date):
        return (BEGAN + timedelta(days=n)).date()
    length = getattr(column.type, "length", None) or 40
    return f"{table.name}-{name}-{n}-行"[-length:]


def fill(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Put rows into every table that has none, whatever tables there are. Returns all rows by table."""
    metadata = MetaData()
    metadata.reflect(connection)
    dialect = connection.dialect.name
    for table in metadata.sorted_tables:
        if not connection.scalar(select(func.count()).select_from(table)):
            rows = [{column.name: value_of(table, column.name, n, dialect) for column in table.columns} for n in range(ROWS)]
            connection.execute(insert(table), rows)
    return content(connection)


def content(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    metadata = MetaData()
    metadata.reflect(connection)
    return {
        table.name: [dict(row._mapping) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
        for table in metadata.sorted_tables
        if table.name != "alembic_version"
    }


def comes_up(url: str, revision: str) -> None:
    upgrade(url, revision)
    engine = engine_for(url)
    try:
        with engine.begin() as connection:
            before = fill(connection)
        assert upgrade(url) == head()
        with engine.connect() as connection:
            after = content(connection)
            difference = compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), Base.metadata)
            if connection.dialect.name == "sqlite":
                assert connection.execute(text("PRAGMA foreign_key_check")).fetchall() == []
    finally:
        engine.dispose()
    assert difference == []
    for name, rows in before.items():
        assert name in after, f"the table {name} is gone"
        kept = [{key: row[key] for key in rows[0] if key in row} for row in after[name]]
        assert kept == [{key: row[key] for key in row if key in after[name][0]} for row in rows], name
    for row in after["verdict_revision"]:  # what a migration reads out of a document is what the program reads out of it
        if "substance" not in before["verdict_revision"][0]:
            assert row["substance"] == substance(row["document"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_it_comes_up_on_sqlite(revision: str, state: Path, tmp_path: Path) -> None:
    comes_up(f"sqlite:///{tmp_path / 'old.db'}", revision)


@pytest.mark.postgres
@pytest.mark.parametrize("revision", REVISIONS)
def test_it_comes_up_on_postgresql(revision: str, state: Path, server: postgres.Server) -> None:
    name = server.fresh()
    comes_up(server.url(name), revision)
    server.drop(name)
