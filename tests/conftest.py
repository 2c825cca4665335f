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
from tests.engine_kit import PATIENCE_S
from tests.needs import pytest_configure, pytest_runtest_setup, pytest_terminal_summary
from tests.people import Cast, enrol

__all__ = ["cast", "patient", "pytest_configure", "pytest_runtest_setup", "pytest_terminal_summary", "state"]


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


@pytest.fixture
def state(_migrated: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a fresh state directory (short path, mode 0700) with an empty, migrated database; the settings point to it.

    A program that the test starts finds it by the environment variable QUADGATE_STATE_DIR, which is set too.
    """
    folder = Path(tempfile.mkdtemp(prefix="qg-"))
    shutil.copy(_migrated, folder / "quadgate.db")
    monkeypatch.setenv("QUADGATE_STATE_DIR", str(folder))
    monkeypatch.setenv("QUADGATE_DATABASE_URL", "")
    monkeypatch.setenv("QUADGATE_BROKER_URL", "")
    _forget()
    yield folder
    _forget()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a service take its time to start and to stop: on a busy machine the bounds only guard against hanging."""
    monkeypatch.setattr("app.up.supervisor.START_S", PATIENCE_S)
    monkeypatch.setattr("app.up.supervisor.CANCEL_S", PATIENCE_S)


@pytest.fixture
def cast(state: Path) -> Cast:
    """Put the fixed cast into the fresh database; its members are actors that came in by the web."""
    with write_session() as s:
        return enrol(s)
