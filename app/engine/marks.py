"""The mark that all processes of an attempt carry on the machines of a controller: which attempt, and of which service.

Two services know one attempt only when one of them was restored from a backup of the other. So a service that was restored adds to the attempt's id
which restore it comes from, by the hash of that row of the audit chain: all its nodes find it in their database, no two restores have the same, and
the service that was left behind carries the mark that it always had. Neither finds, nor ends, what the other runs. What an attempt runs on its
targets has no mark of a controller: it is named by the probe's own ids, and a restored service adopts it.
"""

from __future__ import annotations

from functools import lru_cache

from sqlalchemy import select

from app.audit.models import AuditRow
from app.kit.db import read_session
from app.settings import settings

RESTORED = "service.restore"  # the action of the row that a restore writes
DIGITS = 16  # of that row's hash


def of(attempt_id: str) -> str:
    """Return the mark of an attempt, or of an order, of this service."""
    came_from = _restored(settings().database_url)
    return f"{attempt_id}@{came_from}" if came_from else attempt_id


def forget() -> None:
    """Look into the database anew: it has just been restored."""
    _restored.cache_clear()


@lru_cache(maxsize=4)
def _restored(_url: str) -> str:
    """Return which restore the database comes from, empty where none. Nobody restores into a database in use, so a process asks once."""
    with read_session() as s:
        newest = s.scalar(select(AuditRow.hash).where(AuditRow.action == RESTORED).order_by(AuditRow.seq.desc()).limit(1))
    return (newest or "").removeprefix("sha256:")[:DIGITS]
