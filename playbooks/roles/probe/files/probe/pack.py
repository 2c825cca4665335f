"""Packs: deterministic tars with a list of what is in them, so that a changed or missing file is seen."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from typing import Any, Dict, List, Optional, Tuple

from probe.errors import ProbeError
from probe.files import canonical, sha256_of, sync_dir

FORMAT = tarfile.PAX_FORMAT
SKIPPED = {"lock", "reserve", "probe.pyz", "pack.json", "fence", "job.log", "kept"}


def pack_dir(folder: str, out: str, job: Optional[str] = None) -> Dict[str, Any]:
    """Write every evidence file of `folder` and a `pack.json` into the tar `out`. Return pack.json with the tar's path, size and SHA-256.

    The form is PAX, which has no largest file; where no file is of 8 GiB or more its bytes are those of plain ustar.
    A journal whose process was killed may end in a torn line; the pack holds whole lines only and says how many bytes it left out.
    """
    if not os.path.isdir(folder):
        raise ProbeError("absent", "There is no directory %s to pack." % folder)
    names = sorted(n for n in os.listdir(folder) if n not in SKIPPED and not n.endswith(".tmp") and os.path.isfile(os.path.join(folder, n)))
    if not names:
        raise ProbeError("empty", "The directory %s holds nothing to pack." % folder)
    rows: List[Dict[str, Any]] = []
    temporary = out + ".tmp"
    with open(temporary, "wb") as raw:
        with tarfile.open(fileobj=raw, mode="w", format=FORMAT) as tar:
            for name in names:
                size, torn = _whole_size(os.path.join(folder, name))
                row = {"path": name, "size": size, "sha256": _add(tar, folder, name, size)}
                if torn:
                    row["torn_bytes"] = torn
                rows.append(row)
            body = canonical({"schema": 1, "job": job, "files": rows}) + b"\n"
            tar.addfile(_member("pack.json", len(body)), io.BytesIO(body))
        raw.flush()
        os.fsync(raw.fileno())
    os.replace(temporary, out)
    sync_dir(os.path.dirname(os.path.abspath(out)))
    digest, size = sha256_of(out)
    return {"job": job, "files": rows, "tar": out, "size": size, "sha256": digest}


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o644, 0
    return info


def _whole_size(path: str) -> Tuple[int, int]:
    """Return (bytes up to the last line end, bytes after it) of a journal; the whole size of any other file."""
    size = os.path.getsize(path)
    if not path.endswith(".jsonl") or size == 0:
        return size, 0
    with open(path, "rb") as f:
        end = size
        while end > 0:
            start = max(0, end - 65536)
            f.seek(start)
            found = f.read(end - start).rfind(b"\n")
            if found >= 0:
                whole = start + found + 1
                return whole, size - whole
            end = start
    return 0, size


def _add(tar: tarfile.TarFile, folder: str, name: str, size: int) -> str:
    """Add the first `size` bytes of a file; a journal may still grow. Return their SHA-256."""
    with open(os.path.join(folder, name), "rb") as f:
        reader = _Hashing(f)
        tar.addfile(_member(name, size), reader)  # type: ignore[arg-type]
    return reader.digest.hexdigest()


class _Hashing:
    """A reader that hashes exactly what it hands out, so that the list says what the tar holds."""

    def __init__(self, f: Any) -> None:
        self._f = f
        self.digest = hashlib.sha256()

    def read(self, n: int = -1) -> bytes:
        data: bytes = self._f.read(n)
        self.digest.update(data)
        return data
