"""The time of the service. Everything that needs the time asks here, so that a test can set it in one place."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present time, aware, in UTC.

    Leases and due times are compared by the database's own clock instead (`kit.db.database_now`).
    """
    return datetime.now(UTC)


def stamp(at: datetime | None) -> str | None:
    """Return a time as the text every face and document shows: ISO 8601 in UTC with milliseconds, or None."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
