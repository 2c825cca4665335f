"""The simulated engine under the name and command line of vLLM: as a wheel for a virtual environment, and as a container's image with a Python.

So venv, container and service unit are deployed and measured through the same roles as the real one, in seconds.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path

import yaml

from app.settings import ROOT
from tests.wheels import tiny_wheel

LAB = ROOT / "playbooks/roles/lab_engine/files/lab_engine"
PYTHON = Path("/usr/bin/python3")
SERVER = """
import argparse, asyncio
from lab_engine.__main__ import serve
from lab_engine.config import parse
words = argparse.ArgumentParser(allow_abbrev=False)
for word, kind in (("--host", str), ("--port", int), ("--served-model-name", str)):
    words.add_argument(word, type=kind)
told, _ = words.parse_known_args()
asyncio.run(serve(parse({"model": told.served_model_name, "host": told.host, "port": told.port, **PHYSICS})))
"""


def modules() -> dict[str, str]:
    """Return the modules of both packages by name."""
    demo = yaml.safe_load((ROOT / "app/demo/engagement.yaml").read_text(encoding="utf-8"))
    physics = f"PHYSICS = {json.loads(json.dumps(demo['targets']['engine']['physics']))!r}\n"
    found = {f"lab_engine/{path.stem}": path.read_text(encoding="utf-8") for path in LAB.glob("*.py")}
    names = ("vllm", "vllm/entrypoints", "vllm/entrypoints/openai")
    return {**found, **{f"{name}/__init__": "" for name in names}, "vllm/entrypoints/openai/api_server": physics + SERVER}


def wheel(folder: Path) -> Path:
    """Write vllm-0.33.0 as a wheel."""
    return tiny_wheel(folder, "vllm", "0.33.0", modules())


def image(folder: Path) -> tuple[Path, str]:
    """Write an image as `docker save` does, with this machine's own Python in it; return its file and its id."""
    layer = folder / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        real = PYTHON.resolve()
        library = Path(f"/usr/lib/{real.name}")
        tar.add(real, "usr/bin/python")
        tar.add(library, str(library).lstrip("/"), filter=_wanted)
        for path in sorted(_libraries([real, *library.glob("lib-dynload/*.so")])):
            tar.add(path.resolve(), str(path).lstrip("/"))
        for name, text in modules().items():
            path = folder / "module.py"
            path.write_text(text)
            tar.add(path, f"{library}/{name}.py".lstrip("/"))
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    (folder / "config.json").write_text(json.dumps(config))
    made = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps([{"Config": f"{made}.json", "RepoTags": None, "Layers": ["layer/layer.tar"]}]))
    with tarfile.open(folder / "image.tar", "w") as tar:
        tar.add(layer, "layer/layer.tar")
        tar.add(folder / "config.json", f"{made}.json")
        tar.add(folder / "manifest.json", "manifest.json")
    layer.unlink()
    return folder / "image.tar", f"sha256:{made}"


def _libraries(programs: list[Path]) -> set[Path]:
    """Return the shared libraries of programs, and the loader, by the paths under which they are looked for."""
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    return {Path(word) for line in told.splitlines() for word in line.split() if word.startswith("/") and not word.endswith(":")}


def _wanted(row: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out of the library what the engine does not import."""
    left_out = ("test", "__pycache__", "dist-packages", "idlelib", "lib2to3", "ensurepip")
    name = Path(row.name).name
    return None if name in left_out or name.startswith("config-") else row
