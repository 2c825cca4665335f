"""Alembic's environment: our engine, our naming convention, batch mode for SQLite, one transaction for the whole run."""

from alembic import context
from sqlalchemy import Connection, text

import app.accounts.models
import app.api.models
import app.approvals.models
import app.attempts.models
import app.audit.models
import app.deviations.models
import app.engagements.models
import app.engine.models
import app.evidence.models
import app.packing.models
import app.plans.models
import app.reports.models
import app.wipes.models  # noqa: F401
from app.kit.db import Base, UtcDateTime, engine_for
from app.settings import settings

LOCK = 0x51474D49  # any constant: the advisory lock of migrations


def plain_type(kind: str, item: object, _autogen: object) -> str | bool:
    """Write our column type as what it is in the database: a migration must not change when the program does."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


def run(connection: Connection) -> None:
    """Run the migrations on a connection whose transaction has begun."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": LOCK})
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        compare_type=True,
        render_item=plain_type,
    )
    context.run_migrations()


url = context.config.attributes.get("url") or settings().database_url
engine = engine_for(url).execution_options(quadgate_begin="IMMEDIATE")
with engine.connect() as connection:
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        # A batch migration drops and renames tables; with foreign keys on, the drop would take the rows that point to it.
        # The pragma is ignored inside a transaction, hence the raw connection.
        raw = connection.connection.dbapi_connection
        raw.execute("PRAGMA foreign_keys=OFF")
    try:
        with connection.begin():
            run(connection)
            if sqlite and (broken := connection.execute(text("PRAGMA foreign_key_check")).fetchall()):
                raise RuntimeError(f"the migration would leave {len(broken)} rows that point to nothing, first: {broken[0]}; nothing was changed")
    finally:
        if sqlite:
            raw.execute("PRAGMA foreign_keys=ON")
