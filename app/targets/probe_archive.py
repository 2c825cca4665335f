"""Build the probe's zipapp from its sources: the same sources give the same bytes on every machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from pathlib import Path

from app.settings import ROOT

SOURCE = ROOT / "playbooks" / "roles" / "probe" / "files" / "probe"
_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = b"from probe.cli import main\n\nmain()\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can name


def build_probe(dest: Path, source: Path = SOURCE) -> str:
    """Write the zipapp to `dest` (whole or not at all) and return its SHA-256 in hex.

    Members are stored, not deflated: a deflated byte stream depends on the zlib of the machine that builds.
    """
    modules = sorted(source.glob("*.py"))
    if not modules:
        raise FileNotFoundError(f"There are no sources of the probe below {source}.")
    members = [("__main__.py", _MAIN)] + [(f"probe/{path.name}", path.read_bytes()) for path in modules]
    dest.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=dest.parent, prefix=f".{dest.name}.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(_SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in members:
                info = zipfile.ZipInfo(name, _EPOCH)
                info.create_system, info.external_attr = 3, 0o644 << 16
                archive.writestr(info, data)
        file.flush()
        os.fsync(file.fileno())
    path = Path(temporary)
    path.chmod(0o755)
    path.replace(dest)
    return hashlib.sha256(dest.read_bytes()).hexdigest()
