"""Write a bundle from the store: a directory, or a zip that has the same bytes every time."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.evidence import store
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_
from gates.bundle import MANIFEST, VERDICT
from gates.system_words import said

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold: the time of packing is no part of the evidence


def write(dest: Path, manifest: bytes, files: Sequence[tuple[str, str]], verdict: bytes | None) -> None:
    """Write manifest, evidence files (path, SHA-256) and verdict to `dest`; all or nothing.

    Raises Refused when something is there already, QuadgateError when the disk is full or stored bytes are damaged.
    """
    if dest.exists():
        raise Refused("dest_exists", N_("{path} exists already; the bundle was not written over it."), path=str(dest))
    beside: Path | None = None
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{dest.name}-", dir=_parent(dest)))
        if dest.suffix == ".zip":
            _zip(beside / "bundle.zip", manifest, files, verdict)
            (beside / "bundle.zip").rename(dest)
        else:
            _directory(beside / "bundle", manifest, files, verdict)
            (beside / "bundle").rename(dest)
    except OSError as error:
        free = shutil.disk_usage(dest.parent).free if dest.parent.is_dir() else 0
        raise QuadgateError(
            "export_failed",
            N_("The bundle could not be written to {path} ({free} bytes free): {reason}. Nothing was left there."),
            path=str(dest),
            free=free,
            reason=said(error),
        ) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def stored(path: str, sha256: str) -> bytes:
    """Return the bytes of one evidence file. Raises QuadgateError that names it when the store has lost or altered it."""
    with naming(path):
        return store.read(sha256)


def blocks(path: str, sha256: str) -> Iterator[bytes]:
    """Yield the bytes of one evidence file in blocks; the judge compares their hash with the manifest. Raises QuadgateError as `stored` does."""
    with naming(path), store.open(sha256) as file:
        while block := file.read(1 << 20):
            yield block


def check(digests: Mapping[str, str]) -> None:
    """Raise QuadgateError that names the first evidence file (path -> SHA-256) that the store has lost or altered."""
    for path, sha256 in digests.items():
        with naming(path):
            store.check(sha256)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say which evidence file it is that the store cannot give."""
    try:
        yield
    except QuadgateError as error:
        raise QuadgateError("evidence_lost", N_("Evidence {path} cannot be had: {reason}"), path=path, reason=error.pair()) from error


def _parent(dest: Path) -> Path:
    dest.parent.mkdir(parents=True, exist_ok=True)
    return dest.parent


def _directory(root: Path, manifest: bytes, files: Sequence[tuple[str, str]], verdict: bytes | None) -> None:
    root.mkdir()
    (root / MANIFEST).write_bytes(manifest)
    if verdict is not None:
        (root / VERDICT).write_bytes(verdict)
    for path, sha256 in files:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with naming(path):
            store.copy_to(sha256, target)


def _zip(path: Path, manifest: bytes, files: Sequence[tuple[str, str]], verdict: bytes | None) -> None:
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        archive.writestr(_entry(MANIFEST), manifest)
        if verdict is not None:
            archive.writestr(_entry(VERDICT), verdict)
        for name, sha256 in sorted(files):
            archive.writestr(_entry(name), stored(name, sha256))
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # the same on every machine
    info.external_attr = 0o644 << 16
    return info
