"""Inserting rows that may be there already, on both databases."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import JSON, Table, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import Session

from app.kit.db import Base

_BATCH = 500


def insert_new(s: Session, model: type[Base], rows: Sequence[dict[str, Any]], unique: Sequence[str]) -> None:
    """Insert rows, leaving alone those whose unique columns are taken. Each names all columns but those that the database fills by itself."""
    table = cast(Table, model.__table__)
    for start in range(0, len(rows), _BATCH):
        batch = list(rows[start : start + _BATCH])
        if s.get_bind().dialect.name == "sqlite":
            s.execute(sqlite.insert(table).on_conflict_do_nothing(index_elements=list(unique)), batch)
        else:
            _insert_columns(s, table, batch, unique)


def _insert_columns(s: Session, table: Table, rows: list[dict[str, Any]], unique: Sequence[str]) -> None:
    """Insert rows on PostgreSQL as one short statement with an array a column: many VALUES, or a statement a row, cost several times the CPU."""
    dialect = s.get_bind().dialect
    quote = dialect.identifier_preparer.quote
    arrays, taken, values = [], [], {}
    for name in rows[0]:
        as_json = isinstance(table.c[name].type, JSON)
        kind = "TEXT" if as_json else table.c[name].type.compile(dialect)
        arrays.append(f"CAST(:{name} AS {kind}[])")
        taken.append(f"CAST({quote(name)} AS JSON)" if as_json else quote(name))
        values[name] = [json.dumps(row[name]) for row in rows] if as_json else [row[name] for row in rows]
    names = ", ".join(quote(name) for name in rows[0])
    statement = (  # all names are of our models
        f"INSERT INTO {quote(table.name)} ({names}) SELECT {', '.join(taken)} FROM unnest({', '.join(arrays)}) AS t ({names})"  # noqa: S608
        f" ON CONFLICT ({', '.join(map(quote, unique))}) DO NOTHING"
    )
    s.execute(text(statement), values)
