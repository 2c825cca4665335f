"""A full disk or a folder in the way: a sentence with the place, an attempt in error, and a retry that works once there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from app.attempts.models import Attempt
from app.attempts.usecases import retry
from app.audit import chain
from app.engine.advance import advance
from app.kit.db import read_session, write_session
from app.settings import settings
from tests.conftest import _forget
from tests.engine_kit import PLAYBOOKS, attempt_of, drive, ended, make_attempt, playbook_step
from tests.engine_kit.packs import make_tar
from tests.people import enrol


@pytest.fixture(autouse=True)
def _site(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)


@pytest.fixture
def survey(tmp_path: Path) -> str:
    """An attempt whose one step brings a pack, so that it writes both below runs and below evidence."""
    tar = make_tar(tmp_path / "survey.tar")
    return make_attempt(playbook_step(playbook="packs.yml", params={"tar": str(tar)}, expects={"engine": ("commands.json", "nvme-list.out")}))


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """Mount a small file system in memory at a path."""
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(path: Path) -> None:
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(handle, b"x" * 1024)
    os.close(handle)


def failed(attempt_id: str, code: str, place: Path) -> None:
    attempt = drive(attempt_id, until=ended)
    assert (attempt.status, (attempt.problem or {}).get("code")) == ("error", code)
    assert str(place) in attempt.problem["en"]
    assert str(place) in attempt.problem["zh-CN"]


def tried_again(attempt_id: str) -> Attempt:
    with write_session() as s:
        retry(s, attempt_id=attempt_id, actor=enrol(s).li_wei)
    attempt = drive(attempt_id, until=ended)
    with read_session() as s:
        assert chain.verify(s).ok
    return attempt


@pytest.mark.parametrize(("name", "code"), [("runs", "machine"), ("evidence", "store_failed")])
def test_a_file_where_a_folder_must_be_is_named_and_a_retry_works_without_it(state: Path, survey: str, name: str, code: str) -> None:
    (state / name).write_text("in the way")
    failed(survey, code, state / name)
    (state / name).unlink()
    assert tried_again(survey).status == "finished"


@pytest.mark.mounts
@pytest.mark.parametrize("name", ["runs", "evidence"])
def test_a_full_disk_is_named_and_a_retry_works_when_there_is_room(state: Path, survey: str, name: str) -> None:
    with small_disk(state / name, "1m"):
        fill(state / name / "filler")
        failed(survey, "disk_full", state / name)
        (state / name / "filler").unlink()
        assert tried_again(survey).status == "finished"


@pytest.mark.mounts
@pytest.mark.sqlite
def test_a_full_disk_under_the_database_stops_nothing_for_good_and_loses_nothing(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        stack.enter_context(small_disk(tmp_path / "disk", "8m"))
        shutil.copy(state / "quadgate.db", tmp_path / "disk" / "quadgate.db")
        monkeypatch.setenv("QUADGATE_DATABASE_URL", f"sqlite:///{tmp_path}/disk/quadgate.db")
        _forget()
        monkeypatch.setattr(settings(), "playbook_dir", PLAYBOOKS)
        attempt_id = make_attempt(playbook_step())
        fill(tmp_path / "disk" / "filler")
        assert not advance(attempt_id, attempt_of(attempt_id).generation)
        assert not advance(attempt_id, None)
        (tmp_path / "disk" / "filler").unlink()
        assert drive(attempt_id, until=ended).status == "finished"
        _forget()
