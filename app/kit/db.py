"""The database: engine, the two kinds of session, and the column types every feature uses.

A read session is deferred; a write session begins IMMEDIATE on SQLite, because a read that turns into a write fails at
once with "database is locked" in spite of the busy time-out. One request or task is one transaction, committed here at the edge.
"""

from __future__ import annotations

import logging
import sqlite3
import uuid as _stdlib_uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import uuid_utils
from sqlalchemy import JSON, DateTime, Engine, MetaData, String, create_engine, event, make_url, text
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column
from sqlalchemy.types import TypeDecorator

from app.kit.errors import Refused
from app.kit.i18n import N_
from app.settings import settings

log = logging.getLogger("quadgate.database")
Transactions = Callable[[], AbstractContextManager[Session]]  # opens one short transaction after another: `write_session` at the edge
_AFTER = "after_commit"
BUSY_MS = 30_000  # how long a statement waits for SQLite's one writer
_NO_FAULT_OF_OURS = frozenset(  # of SQLite; its others tell of a statement that is wrong
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL}
)

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base of all tables; constraints are named so that SQLite batch migrations can drop them."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON}  # noqa: RUF012


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC datetime, microseconds kept, on databases with and without time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive datetimes: a time without a zone is a guess."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a datetime without a time zone cannot be stored")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """Give the zone back that SQLite cannot keep."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def new_id() -> str:
    """Return a new UUIDv7 as text: sorts by time of creation."""
    return str(uuid_utils.uuid7())


def is_id(value: str) -> bool:
    """Tell whether a text has the form of an id."""
    try:
        return str(_stdlib_uuid.UUID(value)) == value
    except ValueError:
        return False


def id_column(**kw: Any) -> Any:
    """Return a primary key column holding a UUIDv7 text."""
    return mapped_column(String(36), primary_key=True, default=new_id, **kw)


@lru_cache(maxsize=4)
def engine_for(url: str) -> Engine:
    """Return the engine of a database URL, with SQLite set to WAL, full synchronisation and foreign keys."""
    if url.startswith("sqlite"):
        engine = create_engine(url, connect_args={"timeout": BUSY_MS / 1000, "check_same_thread": False})

        @event.listens_for(engine, "connect")
        def _pragmas(connection: Any, _record: Any) -> None:
            connection.isolation_level = None  # we say BEGIN ourselves
            cursor = connection.cursor()
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={BUSY_MS}"):
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()

        @event.listens_for(engine, "begin")
        def _begin(connection: Any) -> None:
            options = connection.get_execution_options()
            begin = f"BEGIN {options.get('quadgate_begin', 'DEFERRED')}"
            if (patience_ms := options.get("quadgate_patience_ms")) is None:
                connection.exec_driver_sql(begin)
                return
            connection.exec_driver_sql(f"PRAGMA busy_timeout={patience_ms}")
            try:
                connection.exec_driver_sql(begin)
            finally:  # who has begun waits for no other writer, and the next user of the connection has all its patience again
                connection.exec_driver_sql(f"PRAGMA busy_timeout={BUSY_MS}")

        return engine
    return create_engine(url, pool_pre_ping=True, pool_size=5)


@lru_cache(maxsize=4)
def database_file(url: str) -> Path | None:
    """Return the file of an SQLite database; None for a server, for one in memory, and for a `file:` address, which says itself how it is opened."""
    where = make_url(url)
    name = where.database or ":memory:"
    return None if where.get_backend_name() != "sqlite" or name == ":memory:" or name.startswith("file:") else Path(name)


def require_database() -> None:
    """Raise Refused where there is no database: SQLite would make an empty one for whoever only wants to look. Migrations make it."""
    file = database_file(settings().database_url)
    if file is not None and not file.exists():
        raise Refused(
            "no_database",
            N_(
                "There is no Quadgate database in {folder}, and none was made. Start the service with `quadgate up`, or make the database alone "
                "with `quadgate db upgrade`, or let QUADGATE_STATE_DIR name the folder that has one."
            ),
            folder=str(file.parent),
        )


@contextmanager
def read_session(*, one_moment: bool = False) -> Iterator[Session]:
    """Open a session for reading; nothing is committed. Raises Refused where there is no database.

    `one_moment`: all reads see what there was at the first one, on PostgreSQL too (SQLite's always do), so that a count and the rows that it
    counts agree although they are read one after the other.
    """
    require_database()
    engine = engine_for(settings().database_url)
    if one_moment and engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with Session(engine, expire_on_commit=False) as session:
        yield session


@contextmanager
def write_session(*, patience_ms: int | None = None) -> Iterator[Session]:
    """Open a session for writing; commits when the block ends well, rolls back when it does not. Then does what was asked for by `after_commit`.

    Raises Refused where there is no database. `patience_ms`: how long it waits for who writes now, for what may as well not be written.
    """
    require_database()
    engine = engine_for(settings().database_url).execution_options(quadgate_begin="IMMEDIATE", quadgate_patience_ms=patience_ms)
    with Session(engine, expire_on_commit=False) as session:
        with session.begin():
            if patience_ms is not None and engine.dialect.name == "postgresql":
                session.execute(text(f"SET LOCAL lock_timeout = {int(patience_ms)}"))
            yield session
        later: list[Callable[[Transactions], None]] = session.info.pop(_AFTER, [])
    for work in later:
        try:
            work(write_session)
        except Exception:
            log.exception("what was to follow a commit failed; what was committed stands")


def is_away(error: BaseException) -> bool:
    """Tell whether an error says that the database is away, cut off or busy.

    Whether what was asked of it was done is unknown then: a COMMIT that was carried out ends so too when its answer is lost.
    """
    if isinstance(error, PoolTimeout):
        return True
    if not isinstance(error, DBAPIError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _NO_FAULT_OF_OURS
    return error.connection_invalidated or isinstance(error, OperationalError)


def said(error: BaseException) -> str:
    """Return the database's own words of an error, for a log: the whole of it quotes the statement with its values."""
    return str(getattr(error, "orig", None) or error)


def after_commit(session: Session, work: Callable[[Transactions], None]) -> None:
    """Have work done once the transaction of `write_session` is committed and over: what takes long must hold no lock that others wait for."""
    session.info.setdefault(_AFTER, []).append(work)


def writes(session: Session) -> bool:
    """Tell whether a session was opened for writing (`write_session`)."""
    return session.get_bind().get_execution_options().get("quadgate_begin") == "IMMEDIATE"


def database_now(session: Session) -> datetime:
    """Return the database's clock in UTC: due times and leases are read from one clock, whoever asks."""
    if session.get_bind().dialect.name == "sqlite":
        value = session.execute(text("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')")).scalar_one()
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    now: datetime = session.execute(text("SELECT clock_timestamp()")).scalar_one()
    return now.astimezone(UTC)
