"""Where a demo keeps KV: what is asked of the file, and what is found and taken away again."""

from __future__ import annotations

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from app.demo import medium
from app.demo.progress import Progress
from app.demo.run import media_of
from app.engagements.file import read_file
from app.settings import ROOT
from gates.text import Text
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


@pytest.mark.parametrize("why", [None, Text("only root can mount a file system", "只有 root 才能挂载文件系统")], ids=["xfs", "plain"])
def test_a_demo_says_where_its_kv_lies_and_takes_the_media_away_however_it_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: Text | None
) -> None:
    released: list[Path] = []
    monkeypatch.setattr(medium, "lacking", lambda _folder: why)
    monkeypatch.setattr(medium, "release", lambda folder: released.append(folder) or [])
    told = StringIO()
    text = (ROOT / "app" / "demo" / "engagement-vllm-cpu.yaml").read_text(encoding="utf-8")
    kinds = []

    def interrupted() -> None:
        with media_of(tmp_path, text, Progress(Console(file=told, width=200))) as fitted:
            kinds.append(read_file(fitted).targets["volume"]["disk"]["kind"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (kinds, released) == (["directory" if why else "loop_xfs"], [tmp_path])
    for said in (why.en, why.zh) if why else ("XFS on a loop device (disk)", "loop 设备上的 XFS（disk）"):
        assert said in told.getvalue()
