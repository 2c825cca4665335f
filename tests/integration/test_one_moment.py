"""What is read in one look is of one moment, on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import func, select

from app.engine.models import Node
from app.kit.db import database_now, read_session, write_session


def test_a_look_of_one_moment_counts_no_row_that_came_after_its_first_read(state: Path) -> None:
    with read_session(one_moment=True) as looking:
        assert looking.scalar(select(func.count()).select_from(Node)) == 0
        with write_session() as s:
            s.add(Node(name="late", heartbeat_at=database_now(s)))
        assert looking.scalars(select(Node.name)).all() == []
    with read_session(one_moment=True) as looking:
        assert looking.scalars(select(Node.name)).all() == ["late"]
    with read_session() as s:  # and the connection that looked is as every other again
        assert s.scalars(select(Node.name)).all() == ["late"]
