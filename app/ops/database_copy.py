"""One consistent copy of a database while it is written to, and the way back: SQLite by its online backup, PostgreSQL by COPY in one snapshot.

Both read what one transaction sees; nobody waits for them. No program besides this one is needed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from psycopg import sql
from sqlalchemy import Connection, MetaData, NullPool, Table, create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from app.kit import migrate
from app.kit.db import engine_for
from app.kit.errors import Refused
from app.kit.i18n import N_
from app.settings import settings

SQLITE_FILE, TABLES = "database.sqlite", "tables"
CHUNK = 1 << 20


def dialect() -> str:
    """Return the kind of the database of the settings: sqlite or postgresql."""
    return make_url(settings().database_url).get_backend_name()


def save(folder: Path, look: Callable[[Session], None]) -> dict[str, Any]:
    """Write the copy below `folder`, and let `look` see exactly what it holds.

    Returns {"dialect", "revision", "files": [relative paths], "tables": {name: columns}}.
    """
    if dialect() == "sqlite":
        return {"dialect": "sqlite", **_save_sqlite(folder / SQLITE_FILE, look), "files": [SQLITE_FILE], "tables": {}}
    return {"dialect": "postgresql", **_save_postgres(folder / TABLES, look)}


def look_into(path: Path, look: Callable[[Session], None]) -> None:
    """Let `look` see a copy of SQLite without changing a byte of it."""
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True), poolclass=NullPool
    )
    with Session(engine) as s:
        look(s)


def load(folder: Path, made: dict[str, Any]) -> None:
    """Fill the empty database of the settings from a copy, at the revision that the copy had.

    Raises Refused when the database holds anything, or is of another kind than the copy.
    """
    if made["dialect"] != dialect():
        raise Refused(
            "other_database",
            N_("The backup is of a {made} database and QUADGATE_DATABASE_URL names a {here} one. Restore into the same kind."),
            made=made["dialect"],
            here=dialect(),
        )
    require_empty()
    if dialect() == "sqlite":
        target = Path(make_url(settings().database_url).database or "")
        engine_for(settings().database_url).dispose()
        for leftover in (target.with_name(f"{target.name}-wal"), target.with_name(f"{target.name}-shm")):
            leftover.unlink(missing_ok=True)
        with closing(sqlite3.connect(folder / SQLITE_FILE)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
    else:
        _load_postgres(folder / TABLES, made)


def require_empty() -> None:
    """Raise Refused when the database of the settings holds a table."""
    if dialect() == "sqlite" and not Path(make_url(settings().database_url).database or "").exists():
        return
    if tables := inspect(engine_for(settings().database_url)).get_table_names():
        raise Refused("database_in_use", N_("The database holds {n} tables already. A backup is restored into an empty one only."), n=len(tables))


def _save_sqlite(target: Path, look: Callable[[Session], None]) -> dict[str, Any]:
    source = engine_for(settings().database_url).raw_connection()
    try:
        with closing(sqlite3.connect(target)) as copy:
            source.driver_connection.backup(copy)  # type: ignore[union-attr]
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            problems = [str(row[0]) for row in copy.execute("PRAGMA integrity_check(5)")]
            revision = copy.execute("SELECT version_num FROM alembic_version").fetchone()
    finally:
        source.close()
    if problems == ["ok"]:
        look_into(target, look)
    else:
        raise Refused("database_damaged", N_("The database is damaged, so its copy is no backup: {problem}"), problem=problems[0])
    return {"revision": revision[0] if revision else ""}


def _save_postgres(folder: Path, look: Callable[[Session], None]) -> dict[str, Any]:
    folder.mkdir()
    columns: dict[str, list[str]] = {}
    with engine_for(settings().database_url).connect().execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True) as connection:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none() or ""
        for table in _tables(connection):
            columns[table.name] = [column.name for column in table.columns]
            query = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table.name), _names(columns[table.name]))
            with _raw(connection).cursor() as cursor, cursor.copy(query) as copy, (folder / f"{table.name}.copy").open("xb") as file:
                for chunk in copy:
                    file.write(chunk)
        look(Session(connection))
    return {"revision": revision, "files": [f"{TABLES}/{name}.copy" for name in columns], "tables": columns}


def _load_postgres(folder: Path, made: dict[str, Any]) -> None:
    migrate.upgrade(revision=made["revision"])
    with engine_for(settings().database_url).begin() as connection:
        tables = _tables(connection)
        with _raw(connection).cursor() as cursor:
            every = sql.SQL(", ").join(sql.Identifier(table.name) for table in tables)
            cursor.execute(sql.SQL("TRUNCATE {}").format(every))  # what the migrations put there themselves
            for table in tables:
                query = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table.name), _names(made["tables"][table.name]))
                with cursor.copy(query) as copy, (folder / f"{table.name}.copy").open("rb") as file:
                    while chunk := file.read(CHUNK):
                        copy.write(chunk)
            for table in tables:
                _set_sequence(cursor, table)


def _set_sequence(cursor: Any, table: Table) -> None:
    """Let a column that counts by itself go on after its largest value."""
    for column in table.primary_key.columns:
        cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", (f'"{table.name}"', column.name))
        if sequence := cursor.fetchone()[0]:
            largest = sql.SQL("SELECT setval(%s, COALESCE((SELECT max({}) FROM {}), 0) + 1, false)")
            cursor.execute(largest.format(sql.Identifier(column.name), sql.Identifier(table.name)), (sequence,))


def _tables(connection: Connection) -> list[Table]:
    """Return the tables as they stand, each after those that it refers to."""
    metadata = MetaData()
    metadata.reflect(connection)
    return [table for table in metadata.sorted_tables if table.name != "alembic_version"]


def _names(columns: list[str]) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier(name) for name in columns)


def _raw(connection: Connection) -> Any:
    return connection.connection.driver_connection
