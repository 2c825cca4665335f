"""Files that are either whole or not there. A rename alone can leave 0 bytes on a full disk, so the room is reserved beforehand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RESERVE = 64 * 1024


def reserve(path: Path) -> None:
    """Reserve the room of a result that will be written at the end, when the disk may be full."""
    fd = os.open(_draft(path), os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        os.write(fd, b"\0" * RESERVE)
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(path: Path, value: Any) -> None:
    """Write a value as `write_bytes` does. Raises OSError, ValueError or TypeError with nothing visible under the name."""
    write_bytes(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def write_bytes(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write beside, fsync, read back, then rename. Raises OSError or ValueError with nothing new visible under the name."""
    draft = _draft(path)
    fd = os.open(draft, os.O_CREAT | os.O_RDWR, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.ftruncate(fd, len(data))
        os.fsync(fd)
        os.lseek(fd, 0, os.SEEK_SET)
        back = b""
        while chunk := os.read(fd, 1 << 20):
            back += chunk
    finally:
        os.close(fd)
    if back != data:
        raise ValueError(f"{path.name} reads back differently from what was written")
    draft.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path: Path) -> Any | None:
    """Return what a whole file holds; None when it is absent or does not parse."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def write_private(path: Path, text: str) -> None:
    """Create a file that only we can read, from its first moment; replaces a left-over of a start that never happened."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)


def _draft(path: Path) -> Path:
    return path.with_name(f".{path.name}.draft")
