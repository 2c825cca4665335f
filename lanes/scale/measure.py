"""What the parts of the service used: CPU time and memory of whole process trees, transactions and rows of the database, hints in the queue."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import text

from app.engine import marker
from app.kit.db import engine_for
from app.settings import settings
from app.up.part import descendants

TICKS = os.sysconf("SC_CLK_TCK")
COUNTED = ("written", "transactions", "rows", "wal_bytes")


@dataclass(frozen=True)
class Usage:
    """CPU seconds by part since it began, proportional memory in MB by part, and the database's counters."""

    cpu_s: dict[str, float]
    memory_mb: dict[str, float]
    database: dict[str, int] = field(default_factory=dict)


def usage(roots: Mapping[str, int]) -> Usage:
    """Return what the trees below these processes have used by now; what children that ended used is counted with whoever waited for them."""
    families = {name: [pid, *descendants(pid)] for name, pid in roots.items()}
    cpu = {name: sum(map(_cpu_s, pids)) for name, pids in families.items()}
    return Usage(cpu, {name: sum(map(_memory_mb, pids)) for name, pids in families.items()}, _database())


def _cpu_s(pid: int) -> float:
    fields = marker._stat(pid)
    return sum(map(int, fields[11:15])) / TICKS if fields else 0.0  # utime, stime, and both of the children that were waited for


def _memory_mb(pid: int) -> float:
    """Return the proportional set size: what is shared by forks is counted once."""
    try:
        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(row.split()[1]) / 1024 for row in rows if row.startswith("Pss:")), 0.0)


def _database() -> dict[str, int]:
    """Return transactions that wrote, all transactions, rows written and bytes of the write-ahead log; empty on SQLite, which does not count."""
    engine = engine_for(settings().database_url)
    if engine.dialect.name == "sqlite":
        return {}
    with engine.connect() as connection:
        row = connection.execute(
            text(
                "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS written, xact_commit + xact_rollback AS transactions,"
                " tup_inserted + tup_updated + tup_deleted AS rows, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS wal_bytes"
                " FROM pg_stat_database WHERE datname = current_database()"
            )
        ).one()
    return {name: int(getattr(row, name)) for name in COUNTED}


def between(before: Usage, after: Usage) -> tuple[dict[str, float], dict[str, int]]:
    """Return the CPU seconds by part and the database's counters from one moment to another."""
    cpu = {name: after.cpu_s[name] - before.cpu_s.get(name, 0.0) for name in after.cpu_s}
    return cpu, {name: after.database[name] - before.database[name] for name in after.database}
