"""Which processes of this machine belong to a test, told by what their command line and environment name."""

from __future__ import annotations

import os
from pathlib import Path

from app.engine import marker


def mentions(folder: Path) -> list[int]:
    """Return the living processes, other than this one, whose command line or environment names the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and marker.state(int(entry.name)) not in ("Z", "X", ""):
            try:
                if os.fsencode(folder) in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
