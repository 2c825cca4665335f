"""The time of the service. Everything that needs the time asks here, so that a test can set it in one place."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

from app.settings import settings


def now() -> datetime:
    """Return the present time, aware, in UTC.

    Leases and due times are compared by the database's own clock instead (`kit.db.database_now`).
    """
    return datetime.now(UTC)


def machine_time() -> tuple[str, float]:
    """Return (id of the present boot of this machine, seconds of its monotonic clock): ages by it are the same for all processes of the machine.

    A step of the wall clock (a machine that was suspended, the first answer of NTP) does not move it. Two values compare only where the ids agree.
    """
    return _boot_id(), time.monotonic()


@lru_cache(maxsize=1)
def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"unknown-{uuid.uuid4()}"  # of this process alone, so that nothing is compared with it


def stamp(at: datetime | None) -> str | None:
    """Return a time as the text every face and document shows: ISO 8601 in UTC with milliseconds, or None."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(at: datetime | str | None, *, seconds: bool = True) -> str:
    """Return a time as people read it, in the zone of the setting `time_zone` with the zone's name; "" for none, text that is no time as it is.

    "2026-11-29 09:20:31 UTC", "2026-11-29 17:20:31 +08:00 Asia/Shanghai": the offset too, since a zone with summer time has two.
    """
    if at is None or at == "":
        return ""
    try:
        moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        return str(at)
    name = settings().time_zone
    moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC if name == "UTC" else ZoneInfo(name))
    text = f"{moment:%Y-%m-%d %H:%M:%S}" if seconds else f"{moment:%Y-%m-%d %H:%M}"
    if name == "UTC":
        return f"{text} UTC"
    offset = f"{moment:%z}"
    return f"{text} {offset[:3]}:{offset[3:5]} {name}"
