"""Survey packs, good and spoiled."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path


def make_tar(path: Path, spoil: str | None = None) -> Path:
    """Write a survey pack of two files, spoiled in one way or not."""
    command = {"name": "nvme-list", "tool": "nvme-list", "version": "2.8", "argv": ["nvme", "list"], "exit_code": 0, "stdout": "nvme-list.out"}
    files = {"commands.json": json.dumps([command]).encode(), "nvme-list.out": b"{}"}
    if spoil == "less":
        del files["nvme-list.out"]
    listed = [{"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()]
    if spoil == "flip":
        files["nvme-list.out"] = b"[]"
    if spoil == "extra":
        files["more.out"] = b""
    if spoil == "escape":
        files["../../evil"] = b"x"
    members = [*files.items(), ("pack.json", json.dumps({"files": listed}).encode())]
    with tarfile.open(path, "w") as tar:
        for name, data in members[: -1 if spoil == "no-list" else None]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        if spoil == "link":
            info = tarfile.TarInfo("link")
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            tar.addfile(info)
    if spoil == "cut":
        path.write_bytes(path.read_bytes()[:700])
    return path
