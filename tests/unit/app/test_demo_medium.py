"""Where a demo keeps KV: what is asked of the file, and what is found and taken away again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.demo import medium
from tests.needs import require

LOOP = {"kind": "loop_xfs", "mount": "{root}/mnt/disk", "image": "{root}/media/disk.img"}


def test_only_xfs_on_a_loop_device_becomes_a_plain_directory_at_the_same_place() -> None:
    targets = {"volume": {"disk": dict(LOOP), "nfs": {"kind": "nfs", "mount": "/n", "source": "s"}}}
    assert medium.wanted(targets) == ["disk"]
    medium.plain(targets)
    assert targets["volume"] == {"disk": {"kind": "directory", "mount": "{root}/mnt/disk"}, "nfs": {"kind": "nfs", "mount": "/n", "source": "s"}}
    assert medium.wanted(targets) == medium.wanted({}) == []


def test_nobody_but_root_is_told_that_a_file_system_can_be_mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    why = medium.lacking(tmp_path)
    assert why is not None
    assert "root" in why.en
    assert list(tmp_path.iterdir()) == []


def test_what_is_mounted_below_a_folder_is_taken_away_and_what_lies_beside_it_stays(tmp_path: Path) -> None:
    require("mounts")
    inside, beside = tmp_path / "state" / "a b" / "mnt", tmp_path / "state-of-another"
    for point in (inside, beside):
        point.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(point)], check=True)
    try:
        assert medium.mounts(tmp_path / "state") == [str(inside)]
        with (inside / "in-use").open("w"):
            assert medium.release(tmp_path / "state", patience_s=0) == [str(inside)]  # said, not torn away
        assert medium.release(tmp_path / "state") == []
        assert medium.mounts(tmp_path) == [str(beside)]
    finally:
        subprocess.run(["umount", str(beside)], check=True)


def test_a_machine_that_may_make_one_shows_it_by_doing_so_and_keeps_no_trace(tmp_path: Path) -> None:
    require("loop_xfs")
    medium.lacking(tmp_path)  # whether this folder's file system carries a loop device is the machine's own affair
    assert list(tmp_path.iterdir()) == []
    assert medium.mounts(tmp_path) == []
    assert medium.loops(tmp_path) == {}
