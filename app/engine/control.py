"""Ending SSH connections that multiplexing keeps open: ssh overwrites its environment, so the attempt's marker does not find them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def close_masters(control_dir: Path) -> None:
    """Ask the master behind every control socket of a directory to exit; a socket without one is passed over."""
    if not control_dir.is_dir():
        return
    for socket in control_dir.iterdir():
        try:
            subprocess.run(["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "-"], capture_output=True, timeout=5, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
