"""How the probe starts itself again: from the zipapp, or from a folder while it is developed."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Dict, List

MARKER_PREFIX = "QUADGATE_"


def clean_environment() -> Dict[str, str]:
    """Return the environment without the marker variables by which the controller ends what a playbook started.

    A detached job or an engine must outlive its playbook, so it must not be found by that marker. Since /proc/PID/environ shows
    the environment of the exec, a changed os.environ would not do; this goes into a new exec.
    """
    return {k: v for k, v in os.environ.items() if not k.startswith(MARKER_PREFIX)}


def own_path() -> str:
    """Return the zipapp, or the folder that holds the package."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def pinned_copy(folder: str) -> str:
    """Copy the zipapp into `folder` and return the copy: a later deployment must not change the code under a running job."""
    source = own_path()
    if not os.path.isfile(source):
        return source
    target = os.path.join(folder, "probe.pyz")
    if not os.path.exists(target):
        shutil.copyfile(source, target + ".tmp")
        os.replace(target + ".tmp", target)
    return target


def command(path: str, *arguments: str) -> List[str]:
    """Return the argv that runs the probe at `path`, isolated from PYTHON* variables and the user's site-packages."""
    if os.path.isfile(path):
        return [sys.executable, "-I", path, *arguments]
    boot = "import sys; sys.path.insert(0, sys.argv.pop(1)); from probe.cli import main; main()"
    return [sys.executable, "-I", "-B", "-c", boot, path, *arguments]
