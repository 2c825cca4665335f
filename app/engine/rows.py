"""Inserting rows that may be there already, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.kit.db import Base

_BATCH = 500


def insert_new(s: Session, model: type[Base], rows: Sequence[dict[str, Any]], unique: Sequence[str]) -> None:
    """Insert rows, leaving alone those whose unique columns are taken."""
    insert = sqlite.insert if s.get_bind().dialect.name == "sqlite" else postgresql.insert
    for start in range(0, len(rows), _BATCH):
        s.execute(insert(model).on_conflict_do_nothing(index_elements=list(unique)), list(rows[start : start + _BATCH]))
