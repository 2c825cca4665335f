"""What goes to a target runs on Python 3.8, or the oldest interpreter of this machine: every module is imported there, and the kit is used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import oldest_python
from tests.unit.hardware.kit import ARRAY, ROLES, Kit

pytestmark = pytest.mark.old_python

PACKAGES = ("probe/files/probe", "hardware/files/kit/hardware", "lab_engine/files/lab_engine", "lab_rack/files/rack")
# Played as scripts on a target's own Python; what runs in the engine's environment is not among them.
SCRIPTS = ("arm/files", "engine_vllm/files", "offload/files", "hardware/files")
OF_THE_ENGINE = {"build_model.py", "seeded_connector.py"}
IMPORTS = """
import importlib, os, sys
folder, package = sys.argv[1:]
sys.path.insert(0, folder)
for name in sorted(os.listdir(os.path.join(folder, package))):
    if name.endswith(".py") and name != "__main__.py":
        importlib.import_module((package + "." if package != "." else "") + name[:-3])
"""
LOADS = "import runpy, sys; [runpy.run_path(path, run_name='loaded') for path in sys.argv[1:]]"


def old(*words: str) -> None:
    """Run words on the oldest interpreter; it must end well and warn of nothing."""
    done = subprocess.run([str(oldest_python()), "-I", "-B", "-W", "error", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_can_be_imported(package: str) -> None:
    folder = ROLES / package
    flat = folder.name == "rack"  # its modules lie in the archive's root
    old("-c", IMPORTS, str(folder if flat else folder.parent), "." if flat else folder.name)


def test_every_script_of_a_role_can_be_loaded() -> None:
    scripts = [path for folder in SCRIPTS for path in sorted((ROLES / folder).glob("*.py")) if path.name not in OF_THE_ENGINE]
    assert len(scripts) >= 6
    old("-c", LOADS, *map(str, scripts))


def test_the_kit_connects_an_array_and_takes_it_away_again(tmp_path: Path) -> None:
    kit = Kit(tmp_path / "host", python=str(oldest_python()))
    assert kit.run("array", "apply", ARRAY)["wrong"] == []
    assert kit.run("array", "remove", ARRAY)["changed"]
    assert kit.changes() == {}
