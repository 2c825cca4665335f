"""What all tests share: a fresh state directory with a database of the real schema, a fixed cast of people, and how a lane says NOT RUN."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.kit.db import engine_for, write_session
from app.kit.migrate import upgrade
from app.settings import settings
from tests import postgres
from tests.engine_kit import PATIENCE_S
from tests.needs import pytest_configure, pytest_runtest_setup, pytest_terminal_summary
from tests.people import Cast, enrol

__all__ = ["another_database", "cast", "patient", "pytest_configure", "pytest_runtest_setup", "pytest_terminal_summary", "state"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL, take the tests that use a database, and say NOT RUN for all of them where there is no server."""
    if not postgres.asked_for():
        return
    on_a_database = [item for item in items if "state" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(on_a_database)])
    items[:] = [item for item in on_a_database if item.get_closest_marker("sqlite") is None]
    config.hook.pytest_deselected(items=[item for item in on_a_database if item.get_closest_marker("sqlite") is not None])
    for item in items:
        item.add_marker(pytest.mark.postgres)


def _forget() -> None:
    """Close the databases and forget the settings that this process has read."""
    if settings.cache_info().currsize:
        engine_for(settings().database_url).dispose()
    settings.cache_clear()
    engine_for.cache_clear()


@pytest.fixture(scope="session")
def _migrated() -> Iterator[Path]:
    """Migrate one database with the real migrations; each test gets a copy."""
    folder = Path(tempfile.mkdtemp(prefix="qg-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QUADGATE_STATE_DIR", str(folder))
        patch.setenv("QUADGATE_DATABASE_URL", "")
        _forget()
        upgrade()
        _forget()  # closing the last connection folds the write-ahead log into the file
    yield folder / "quadgate.db"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def _server() -> Iterator[postgres.Server | None]:
    """Run a PostgreSQL server with a migrated database to copy, when the tests are to run on one."""
    if not postgres.asked_for():
        yield None
        return
    with postgres.server() as running:
        url = running.url(running.fresh())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("QUADGATE_STATE_DIR", str(running.folder / "state"))
            patch.setenv("QUADGATE_DATABASE_URL", url)
            _forget()
            upgrade()
            _forget()
        yield running


@pytest.fixture
def state(_migrated: Path, _server: postgres.Server | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a fresh state directory (short path, mode 0700) with an empty, migrated database; the settings point to it.

    A program that the test starts finds it by the environment variable QUADGATE_STATE_DIR, which is set too.
    """
    folder = Path(tempfile.mkdtemp(prefix="qg-"))
    name = _server.fresh("t1") if _server else ""
    if not _server:
        shutil.copy(_migrated, folder / "quadgate.db")
    monkeypatch.setenv("QUADGATE_STATE_DIR", str(folder))
    monkeypatch.setenv("QUADGATE_DATABASE_URL", _server.url(name) if _server else "")
    monkeypatch.setenv("QUADGATE_BROKER_URL", "")
    monkeypatch.setenv("QUADGATE_STOP_SECONDS", str(int(PATIENCE_S)))  # a busy machine is no target that does not answer
    _forget()
    yield folder
    _forget()
    if _server:
        _server.drop(name)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def another_database(_server: postgres.Server | None) -> Iterator[str]:
    """Give the address of a second, empty database; the empty text on SQLite, where another state directory brings another one."""
    name = _server.fresh() if _server else ""
    yield _server.url(name) if _server else ""
    if _server:
        _forget()
        _server.drop(name)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a service take its time to start and to stop: on a busy machine the bounds only guard against hanging."""
    monkeypatch.setattr("app.up.supervisor.START_S", PATIENCE_S)


@pytest.fixture
def cast(state: Path) -> Cast:
    """Put the fixed cast into the fresh database; its members are actors that came in by the web."""
    with write_session() as s:
        return enrol(s)
