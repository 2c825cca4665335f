"""A pack is believed only when it is what its own list says."""

from __future__ import annotations

import errno
import tarfile
from pathlib import Path

import pytest

from app.engine import packs
from tests.engine_kit.packs import make_tar


def staging(tmp_path: Path, spoil: str | None = None) -> Path:
    (tmp_path / "gpu01").mkdir()
    make_tar(tmp_path / "gpu01" / "survey.tar", spoil)
    return tmp_path


def test_a_good_pack_gives_its_files_with_what_the_commands_say(tmp_path: Path) -> None:
    files, found = packs.read_all(staging(tmp_path), ["gpu01", "gpu02"], tmp_path / "unpacked")
    assert found == []
    assert [file.name for file in files] == ["commands.json", "nvme-list.out", "pack.json"]
    assert files[1].meta["tool_version"] == "2.8"
    assert files[1].path.read_bytes() == b"{}"


@pytest.mark.parametrize(
    ("spoil", "word"),
    [("flip", "SHA-256"), ("extra", "more.out"), ("escape", "evil"), ("cut", "tar"), ("no-list", "pack.json"), ("link", "link")],
)
def test_a_spoiled_pack_gives_no_file_and_a_sentence(tmp_path: Path, spoil: str, word: str) -> None:
    files, found = packs.read_all(staging(tmp_path, spoil), ["gpu01"], tmp_path / "unpacked")
    assert files == []
    assert [trouble.code for trouble in found] == ["bad_pack"]
    assert word in found[0].text.en
    assert "gpu01" in found[0].text.zh
    assert not (tmp_path.parent / "evil").exists()


def test_what_is_missing_is_told_by_host_and_file_not_by_count(tmp_path: Path) -> None:
    files, _ = packs.read_all(staging(tmp_path), ["gpu01"], tmp_path / "unpacked")
    members = {"engine": ["gpu01", "gpu02"]}
    assert packs.missing(files, {"engine": ["nvme-list.out"]}, members) == {"gpu02": ["nvme-list.out"]}
    assert packs.missing(files, {"engine": ["fio.out"], "storage": ["x"]}, members) == {"gpu01": ["fio.out"], "gpu02": ["fio.out"]}


def test_a_pack_that_came_in_parts_is_read_as_the_one_tar_that_it_is(tmp_path: Path) -> None:
    tar = staging(tmp_path) / "gpu01" / "survey.tar"
    data = tar.read_bytes()
    for n in range(0, len(data), 1000):
        tar.with_name(f"survey.tar.{n // 1000:04d}").write_bytes(data[n : n + 1000])
    tar.unlink()
    files, found = packs.read_all(tmp_path, ["gpu01"], tmp_path / "unpacked")
    assert (found, [file.name for file in files]) == ([], ["commands.json", "nvme-list.out", "pack.json"])
    tar.with_name("survey.tar.0001").unlink()
    files, found = packs.read_all(tmp_path, ["gpu01"], tmp_path / "again")
    assert (files, [trouble.code for trouble in found]) == ([], ["bad_pack"])
    assert "survey.tar " in found[0].text.en


def test_an_entry_with_holes_is_refused_since_it_would_unpack_to_more_than_came(tmp_path: Path) -> None:
    (tmp_path / "gpu01").mkdir()
    with tarfile.open(tmp_path / "gpu01" / "job.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        info = tarfile.TarInfo("records.jsonl")
        info.type = tarfile.GNUTYPE_SPARSE
        tar.addfile(info)
    files, found = packs.read_all(tmp_path, ["gpu01"], tmp_path / "unpacked")
    assert (files, [trouble.code for trouble in found]) == ([], ["bad_pack"])


def test_a_full_disk_here_is_not_the_packs_fault_and_what_was_unpacked_makes_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(packs, "_copy", full)
    with pytest.raises(OSError, match="No space left"):
        packs.read_all(staging(tmp_path), ["gpu01"], tmp_path / "unpacked")
    assert list((tmp_path / "unpacked").glob("*/*")) == []


def test_what_is_wrong_with_a_tar_is_said_in_chinese_too(tmp_path: Path) -> None:
    _, found = packs.read_all(staging(tmp_path, "cut"), ["gpu01"], tmp_path / "unpacked")
    assert "数据提前结束（unexpected end of data）" in found[0].text.zh
