"""The same migrations and use cases on a real PostgreSQL server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from app.accounts.usecases import actor_of_session, sign_in
from app.attempts.usecases import start_attempt
from app.audit.chain import verify
from app.engagements.usecases import board
from app.kit.db import Base, database_now, engine_for, read_session, write_session
from app.kit.errors import Refused
from app.kit.migrate import current, head, upgrade
from app.settings import settings
from tests import postgres
from tests.people import PASSWORD, Cast, enrol
from tests.scenes import engage, run

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Run a server and give the address of an empty database."""
    with postgres.server() as running:
        yield running.url(running.fresh())


@pytest.fixture
def cast_on_postgres(server: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cast]:
    """Point the settings to the server, migrate it, and put the cast into it."""
    monkeypatch.setenv("QUADGATE_DATABASE_URL", server)
    settings.cache_clear()
    assert upgrade() == upgrade() == current() == head()
    with write_session() as s:
        cast = enrol(s)
    yield cast
    engine_for(server).dispose()


def test_an_engagement_lives_on_postgresql_as_it_does_on_sqlite(cast_on_postgres: Cast) -> None:
    cast = cast_on_postgres
    with engine_for(settings().database_url).connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), Base.metadata) == []
    with write_session() as s:
        engagement = engage(s, cast)
        for gate in ("G1", "G2"):
            run(s, cast, engagement, gate)
        assert database_now(s).tzinfo is UTC
        assert engagement.created_at.tzinfo is not None
    with write_session() as s:
        signed = sign_in(s, login="li.wei", password=PASSWORD)
    with read_session() as s:
        assert actor_of_session(s, signed.token) is not None
        assert board(s, actor=cast.zhao_lei)[0]["next"]["gate"] == "G3"
    _two_starts_at_the_same_moment_make_one_attempt(cast, engagement.id)
    with read_session() as s:
        assert verify(s).ok


def _two_starts_at_the_same_moment_make_one_attempt(cast: Cast, engagement_id: str) -> None:
    ends: list[str] = []
    together = threading.Barrier(2)

    def start(rehearsal: bool) -> None:
        together.wait(10)
        try:
            with write_session() as s:
                start_attempt(s, engagement_id=engagement_id, gate="G3", rehearsal=rehearsal, actor=cast.li_wei)
            ends.append("started")
        except Refused as refusal:
            ends.append(refusal.code)

    threads = [threading.Thread(target=start, args=(rehearsal,)) for rehearsal in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["attempt_active", "started"]
