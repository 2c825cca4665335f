"""Files that are whole or absent: write, fsync, read back, rename. Why: a rename on a full disk leaves 0 bytes and looks like success."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Iterator, Set, Tuple

from probe.errors import ProbeError

RESERVE_BYTES = 64 * 1024


def dumps(obj: Any) -> str:
    """Return compact ASCII JSON; ASCII makes byte offsets equal to character offsets."""
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=True)


def canonical(obj: Any) -> bytes:
    """Return JSON bytes with sorted keys, equal for equal data."""
    return json.dumps(obj, separators=(",", ":"), sort_keys=True, ensure_ascii=True).encode("ascii")


def write_whole(path: str, data: bytes, durable: bool = True) -> None:
    """Write `data` to `path` so that a reader sees the old bytes or the new ones; `durable` adds fsync and reading back."""
    temporary = "%s.%d.tmp" % (path, os.getpid())
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    if durable:
        with open(temporary, "rb") as f:
            if f.read() != data:
                raise ProbeError(
                    "read_back", "The file %s did not read back as written; the disk lost bytes. Check the disk and its free space." % path
                )
    os.replace(temporary, path)
    if durable:
        sync_dir(os.path.dirname(path) or ".")


def write_json(path: str, obj: Any, durable: bool = True) -> None:
    """Write one JSON object and a line end, whole or not at all."""
    write_whole(path, (dumps(obj) + "\n").encode("ascii"), durable)


def read_json(path: str) -> Any:
    """Return the parsed file, or None when it is absent or not whole JSON."""
    try:
        with open(path, "rb") as f:
            return json.loads(f.read().decode("utf-8"))
    except (OSError, ValueError):
        return None


def load_spec(path: str) -> Any:
    """Return the JSON object of a specification file; a sentence that names the file when it is absent or broken."""
    try:
        with open(path, "rb") as f:
            spec = json.loads(f.read().decode("utf-8"))
    except OSError as error:
        raise ProbeError("spec", "The specification %s cannot be read: %s." % (path, error.strerror)) from error
    except ValueError as error:
        raise ProbeError("spec", "The specification %s is not JSON: %s." % (path, error)) from error
    if not isinstance(spec, dict):
        raise ProbeError("spec", "The specification %s must hold one JSON object." % path)
    return spec


def sync_dir(path: str) -> None:
    """Make names in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def reserve(path: str) -> None:
    """Keep real blocks aside for the last words of a job on a full disk."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        try:
            os.posix_fallocate(fd, 0, RESERVE_BYTES)
        except OSError:
            os.write(fd, b"\0" * RESERVE_BYTES)
        os.fsync(fd)
    finally:
        os.close(fd)


def sha256_of(path: str) -> Tuple[str, int]:
    """Return (hex digest, size in bytes) of a file."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def walk_files(root: str, links: bool = False) -> Iterator[str]:
    """Yield every regular file below `root` in a stable order; names that vanish meanwhile are skipped.

    With `links` also what a link leads to, each real file once and by its real path: a folder of a model often holds links into a store. A link
    to nothing is an error then, since what it stands for cannot be looked at.
    """
    seen: Set[str] = set()
    for folder, folders, names in os.walk(root, followlinks=links):
        if links:
            real = os.path.realpath(folder)
            if real in seen:
                folders[:] = []  # a link that leads back
                continue
            seen.add(real)
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                if not links:
                    continue
                if not os.path.exists(path):
                    raise ProbeError("absent", "%s is a link to %s, which is not there." % (path, os.readlink(path)))
            if links:
                path = os.path.realpath(path)
                if path in seen:
                    continue
                seen.add(path)
            if os.path.isfile(path):
                yield path
