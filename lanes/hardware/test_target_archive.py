"""What a site without internet carries in: made from wheels, verified before anything is unpacked, installed by its hashes, taken away again."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from app.settings import ROOT
from lanes.hardware.test_engine_role import container, image_archive
from tests.integration.role_lab import RoleLab
from tests.wheels import tiny_wheel

UNPACK = ROOT / "playbooks/roles/engine_vllm/files/unpack.py"


def made(folder: Path, *arguments: str, expect: int = 0) -> dict[str, Any]:
    """Make an archive of two tiny wheels, one needing the other, without an index."""
    tiny_wheel(folder / "source", "vllm", "0.33.0", {"vllm": ""}, needs=["tiny-needed>=1"])
    tiny_wheel(folder / "source", "tiny-needed", "1.5")
    argv = [sys.executable, "-m", "tools.target_archive", "--accelerator", "rocm", "--pip-args", f"--no-index --find-links {folder / 'source'}"]
    done = subprocess.run([*argv, "--out", str(folder / "target.tar"), *arguments], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == expect, done.stderr
    return json.loads(done.stdout) if expect == 0 else {"said": done.stderr}


def unpack(folder: Path, sha256: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", str(UNPACK), str(folder / "target.tar"), str(folder / "there"), sha256]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archive")


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    image_archive(folder / "image.tar")
    return made(folder, "--image", str(folder / "image.tar"))


def test_it_holds_probe_kit_wheels_image_and_a_manifest_of_their_hashes(folder: Path, told: dict[str, Any]) -> None:
    with tarfile.open(folder / "target.tar") as tar:
        assert tar.getnames()[0] == "MANIFEST.json"
        manifest = json.load(tar.extractfile("MANIFEST.json"))  # type: ignore[arg-type]
        needed = tar.extractfile("requirements.txt").read().decode().splitlines()  # type: ignore[union-attr]
    names = {Path(row["path"]).name for row in manifest["files"]}
    assert {"probe.pyz", "hardware.pyz", "image.tar", "requirements.txt", "vllm-0.33.0-py3-none-any.whl", "tiny_needed-1.5-py3-none-any.whl"} == names
    assert [line.split(" --hash=sha256:")[0] for line in needed] == ["tiny-needed==1.5", "vllm==0.33.0"]
    assert (manifest["packages"], manifest["image_id"]) == (["vllm==0.33.0"], told["image_id"])
    assert told["image_id"].startswith("sha256:")


def test_a_package_that_cannot_be_had_leaves_no_archive(tmp_path: Path) -> None:
    assert "tiny-absent" in made(tmp_path, "--packages", "tiny-absent==1", expect=1)["said"]
    assert not (tmp_path / "target.tar").exists()


def test_nothing_is_unpacked_of_another_archive_than_the_engagement_names(folder: Path, told: dict[str, Any]) -> None:
    refused = unpack(folder, "0" * 64)
    assert refused.returncode == 1
    assert told["archive_sha256"] in refused.stderr
    assert not (folder / "there").exists()


def test_a_file_that_is_not_what_the_manifest_says_is_refused(folder: Path, told: dict[str, Any], tmp_path: Path) -> None:
    with tarfile.open(folder / "target.tar") as tar, tarfile.open(tmp_path / "target.tar", "w") as out:
        for member in tar:
            source = tar.extractfile(member)
            if member.name == "probe.pyz":
                source = (folder / "image.tar").open("rb")
                member.size = (folder / "image.tar").stat().st_size
            out.addfile(member, source)
    sha256 = hashlib.sha256((tmp_path / "target.tar").read_bytes()).hexdigest()
    assert "probe.pyz in it is not what its manifest says" in unpack(tmp_path, sha256).stderr


def test_the_role_installs_from_it_by_hashes_once_and_takes_it_away(folder: Path, told: dict[str, Any], tmp_path: Path) -> None:
    lab = RoleLab(tmp_path)
    site = container(tmp_path, install="venv", venv=str(tmp_path / "venv"), archive=str(folder / "target.tar"), archive_sha256=told["archive_sha256"])
    first = lab.play("engine_vllm", site=site)
    assert first.rc == 0, first.output
    installed = {path.name for path in (tmp_path / "venv").glob("lib/python*/site-packages/*.dist-info")}
    assert {"vllm-0.33.0.dist-info", "tiny_needed-1.5.dist-info"} <= installed
    assert (second := lab.play("engine_vllm", site=site)).changed == 0, second.output
    assert lab.play("engine_vllm", site={}, engine_vllm_state="absent").rc == 0
    assert not (tmp_path / "venv").exists()
