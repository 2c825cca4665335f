"""The store keeps bytes under their hash, and a bad moment leaves nothing half-written."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from app.evidence import store
from app.kit.errors import NotFound, QuadgateError
from app.settings import settings


def _files() -> list[Path]:
    return [p for p in settings().evidence_dir.rglob("*") if p.is_file()]


def test_bytes_come_back_as_they_went_in_and_the_same_bytes_are_kept_once(state: Path, tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "file").write_bytes(data)
    first, second = store.put_bytes(data), store.put_file(tmp_path / "file")
    assert first == second == store.Stored(hashlib.sha256(data).hexdigest(), len(data))
    assert store.read(first.sha256) == data
    assert [p.stat().st_mode & 0o777 for p in _files()] == [0o400]


def test_a_full_disk_gives_a_sentence_with_path_and_free_bytes_and_leaves_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(QuadgateError) as caught:
        store.put_bytes(b"x" * 1000)
    assert caught.value.code == "disk_full"
    assert str(settings().evidence_dir) in caught.value.text("zh_CN")
    assert "free" in caught.value.text("en")
    assert _files() == []


def test_what_reads_back_differently_is_not_stored(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_hash_of", lambda _path: "0" * 64)
    with pytest.raises(QuadgateError, match="reads back differently"):
        store.put_bytes(b"data")
    assert _files() == []


def test_a_damaged_file_is_told_when_read_and_mended_when_stored_again(state: Path) -> None:
    stored = store.put_bytes(b"good bytes")
    path = store.path_of(stored.sha256)
    path.chmod(0o600)
    path.write_bytes(b"bad  bytes")
    with pytest.raises(QuadgateError, match="altered or damaged"):
        store.read(stored.sha256)
    store.put_bytes(b"good bytes")
    assert store.read(stored.sha256) == b"good bytes"


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "ab" * 31, "AB" * 32])
def test_a_name_that_is_no_hash_leads_nowhere(state: Path, name: str) -> None:
    with pytest.raises(NotFound):
        store.open(name)


def test_a_hash_that_was_never_stored_is_not_found(state: Path) -> None:
    with pytest.raises(NotFound):
        store.open("0" * 64)
