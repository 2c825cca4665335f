"""Two services that know one attempt on one machine, a restored one and the one that was left behind: neither ends what the other runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.accounts.actor import command_line
from app.attempts.usecases import request_cancel
from app.engine import marker, marks, runner
from app.kit.db import write_session
from app.ops import backup
from app.ops.restore import restore
from app.settings import settings
from tests.conftest import _forget
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step, steps_of, wait_for

Go = Callable[[str], None]


@pytest.fixture
def go(state: Path, tmp_path: Path, another_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Go]:
    """Return what lets the following happen in the `old` service or in the `new` one; at the end nothing of either runs."""
    monkeypatch.setenv("QUADGATE_PLAYBOOK_DIR", str(PLAYBOOKS))
    _forget()
    places = {"old": (str(state), settings().database_url), "new": (str(tmp_path / "new"), another_database)}

    def there(which: str) -> None:
        _forget()
        monkeypatch.setenv("QUADGATE_STATE_DIR", places[which][0])
        monkeypatch.setenv("QUADGATE_DATABASE_URL", places[which][1])
        monkeypatch.setenv("QUADGATE_NODE", f"{which}-service")
        _forget()

    there("old")
    yield there
    for pid in {pid for folder, _ in places.values() for pid in living(Path(folder))}:
        os.kill(pid, 9)


def living(folder: Path) -> list[int]:
    """Return the playbook hosts of a state directory."""
    before = settings().state_dir
    settings().state_dir = folder
    try:
        return runner.living_here()
    finally:
        settings().state_dir = before


def under_way(attempt_id: str) -> set[int]:
    """Return the playbook host of the present service's attempt and the program of its module, once that is at work: what lives until it is ended."""

    def at_work() -> set[int]:
        carriers = {pid: argv(pid) for pid in marker.carriers(marks.of(attempt_id))}
        lasting = {pid for pid, words in carriers.items() if os.fsencode(runner.HOST_PROGRAM) in words or words[:2] == [b"sleep", b"600"]}
        return lasting if len(lasting) > 1 else set()

    found: set[int] = wait_for(at_work, said="the playbook is at work")
    return found


def argv(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def canceled(attempt_id: str) -> None:
    with write_session() as s:
        request_cancel(s, attempt_id=attempt_id, reason="a person", actor=command_line())
    assert drive(attempt_id, until=ended).status == "canceled"


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if marker.state(pid) not in ("", "Z", "X")}


def test_neither_of_two_services_ends_a_playbook_of_the_other(go: Go, tmp_path: Path) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 600}))
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "starting")
    theirs = under_way(attempt_id)
    assert backup.make(tmp_path / "copy", credentials=False, actor=command_line()).problems == []
    go("new")
    assert restore(tmp_path / "copy", actor=command_line()).adopted == [attempt_id]
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].try_no == 2)  # the run of the other counts as lost, and what it left here is ended
    ours = under_way(attempt_id)
    assert alive(theirs) == theirs
    assert not ours & theirs
    canceled(attempt_id)
    assert (alive(ours), alive(theirs)) == (set(), theirs)
    go("old")
    assert attempt_of(attempt_id).status == "running"
    canceled(attempt_id)
    assert alive(theirs) == set()


def test_the_service_that_was_left_behind_ends_nothing_of_the_restored_one(go: Go, tmp_path: Path) -> None:
    attempt_id = make_attempt(playbook_step(playbook="slow.yml", params={"seconds": 600}))
    backup.make(tmp_path / "copy", credentials=False, actor=command_line())
    go("new")
    restore(tmp_path / "copy", actor=command_line())
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "starting")
    ours = under_way(attempt_id)
    go("old")
    drive(attempt_id, until=lambda a: steps_of(a.id)[0].status == "starting")
    theirs = under_way(attempt_id)
    canceled(attempt_id)
    assert (alive(theirs), alive(ours)) == (set(), ours)
    go("new")
    canceled(attempt_id)
    assert alive(ours) == set()


def test_each_restore_of_one_backup_makes_another_mark(go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_id = make_attempt(playbook_step())
    found = {marks.of(attempt_id)}
    assert found == {attempt_id}  # of a service that was never restored, as it was in earlier versions
    backup.make(tmp_path / "copy", credentials=False, actor=command_line())
    go("new")
    restore(tmp_path / "copy", actor=command_line())
    first = marks.of(attempt_id)
    marks.forget()
    assert marks.of(attempt_id) == first != attempt_id
    backup.make(tmp_path / "second", credentials=False, actor=command_line())
    if settings().database_url.startswith("sqlite"):
        for copy in ("copy", "second"):
            _forget()
            monkeypatch.setenv("QUADGATE_STATE_DIR", str(tmp_path / f"from-{copy}"))
            _forget()
            restore(tmp_path / copy, actor=command_line())
            found.add(marks.of(attempt_id))
        assert len(found | {first}) == 4
