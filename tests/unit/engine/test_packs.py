"""A pack is believed only when it is what its own list says."""

from __future__ import annotations

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
