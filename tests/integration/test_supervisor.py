"""The one-machine supervisor with real parts: broker, worker, beat."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.engine import marker
from app.kit.errors import Refused
from app.settings import settings
from app.up import Supervisor
from app.up.leftovers import SUPERVISED
from tests.engine_kit import PLAYBOOKS, attempt_of, ended, make_attempt, playbook_step, wait_for


@pytest.fixture
def service(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    settings.cache_clear()
    supervisor = Supervisor()
    supervisor.start(web=False)
    yield supervisor
    supervisor.stop()


def mentions(folder: Path) -> list[int]:
    """Return the living processes whose command line or environment names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and marker.state(int(entry.name)) not in ("Z", "X", ""):
            try:
                if os.fsencode(folder) in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_an_attempt_goes_through_celery_and_nothing_is_left_when_the_service_stops(service: Supervisor, state: Path) -> None:
    attempt_id = make_attempt(playbook_step())
    wait_for(lambda: ended(attempt_of(attempt_id)), 40)
    assert attempt_of(attempt_id).status == "finished"
    assert service.health().ok
    with pytest.raises(Refused):
        Supervisor().start(web=False)
    assert mentions(state)
    service.stop()
    assert mentions(state) == []
    assert marker.carriers(str(state), SUPERVISED) == []
