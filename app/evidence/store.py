"""The content-addressed store: bytes lie under the SHA-256 of what they are, so a name can never hold something else.

A file is written beside, flushed to the disk, read back and hashed again, and only then takes its name; a full disk, a crash or a
bad sector leaves nothing half-written under a name. Nothing is ever overwritten; only retention removes what nothing refers to.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.kit.errors import NotFound, QuadgateError
from app.kit.i18n import N_
from app.settings import settings
from gates.system_words import said

CHUNK = 1 << 20
NOT_STORED = N_(
    "The evidence store {folder} holds no file with the SHA-256 {sha256}. Where there are several nodes they must share this folder "
    "(`quadgate health` tells whether they do); else restore it from a backup."
)


@dataclass(frozen=True)
class Stored:
    """What was stored: SHA-256 in hexadecimal digits, size in bytes."""

    sha256: str
    size: int


def put_bytes(data: bytes) -> Stored:
    """Store bytes; storing the same bytes again changes nothing."""
    return _put([data])


def put_file(path: Path, between: Callable[[], None] = lambda: None) -> Stored:
    """Store a copy of a file, without reading it into memory as a whole. `between`: asked at every piece, and may raise: then nothing is stored."""
    with path.open("rb") as file:
        return _put(_chunks(file, between))


def open(sha256: str) -> BinaryIO:
    """Open stored bytes for reading. Raises NotFound when the store does not hold them."""
    try:
        return path_of(sha256).open("rb")
    except FileNotFoundError:
        raise NotFound("not_stored", NOT_STORED, sha256=sha256, folder=str(settings().evidence_dir)) from None
    except OSError as error:
        raise _unreadable(sha256, error) from error


def read(sha256: str) -> bytes:
    """Return stored bytes, hashed again on the way out.

    Raises QuadgateError when they are no longer what their name says, NotFound when the store does not hold them.
    """
    try:
        with open(sha256) as file:
            data = file.read()
    except OSError as error:
        raise _unreadable(sha256, error) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise _altered(sha256)
    return data


def check(sha256: str) -> None:
    """Hash stored bytes again, without holding them. Raises as `read` does."""
    with open(sha256) as file:
        try:
            found = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        except OSError as error:
            raise _unreadable(sha256, error) from error
    if found != sha256:
        raise _altered(sha256)


def path_of(sha256: str) -> Path:
    """Return where bytes of that hash lie, or would lie."""
    if len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
        raise NotFound("not_a_hash", N_("{sha256} is not a SHA-256: 64 hexadecimal digits are needed."), sha256=repr(sha256))
    return settings().evidence_dir / sha256[:2] / sha256[2:]


def stored_files() -> list[Path]:
    """Return all files of the evidence store by their final names."""
    return sorted(settings().evidence_dir.glob("[0-9a-f][0-9a-f]/" + "[0-9a-f]" * 62))


def copy_to(sha256: str, target: Path) -> None:
    """Copy stored bytes to a file, hashed on the way: an export never spreads what the store has lost."""
    digest = hashlib.sha256()
    with open(sha256) as source, target.open("xb") as copy:
        for chunk in _readable(sha256, source):
            digest.update(chunk)
            copy.write(chunk)
    if digest.hexdigest() != sha256:
        raise _altered(sha256)


def discard(sha256: str, *, before: float) -> bool:
    """Remove stored bytes that nobody has stored again since `before` (seconds since the epoch). Returns whether they are gone.

    Whoever stores the same bytes at this very moment keeps them: it touches the file first, and what was touched is put back.
    """
    final = path_of(sha256)
    held = settings().evidence_dir / "incoming" / f"discard-{sha256}"
    try:
        if final.stat().st_mtime >= before:
            return False
        held.parent.mkdir(mode=0o700, exist_ok=True)
        final.rename(held)
    except FileNotFoundError:
        return False
    if held.stat().st_mtime >= before:
        held.rename(final)
        return False
    held.unlink()
    return True


def _put(chunks: Iterable[bytes]) -> Stored:
    """Write beside, flush, read back, rename, flush the folder."""
    root = settings().evidence_dir
    temporary: Path | None = None
    try:
        beside = root / "incoming"
        beside.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=beside)
        temporary = Path(name)
        stored = _write(handle, chunks)
        if _hash_of(temporary) != stored.sha256:
            raise QuadgateError(
                "readback_differs",
                N_("{path} reads back differently from what was written: the disk cannot be trusted. Nothing was stored."),
                path=name,
            )
        final = path_of(stored.sha256)
        final.parent.mkdir(exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            os.utime(final)  # "wanted just now": see discard
        if not _holds(final, stored):
            temporary.replace(final)
            flush_folder(final.parent)
            flush_folder(root)
    except OSError as error:
        raise explained(error, root) from error
    else:
        return stored
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _write(handle: int, chunks: Iterable[bytes]) -> Stored:
    """Write all chunks through an open descriptor and flush them to the disk; closes the descriptor."""
    digest, size = hashlib.sha256(), 0
    with os.fdopen(handle, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
        os.fchmod(file.fileno(), 0o400)
    return Stored(digest.hexdigest(), size)


def _holds(final: Path, stored: Stored) -> bool:
    """Tell whether the store has these bytes already and undamaged; a damaged copy is replaced by the good one."""
    return final.exists() and final.stat().st_size == stored.size and _hash_of(final) == stored.sha256


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _chunks(file: BinaryIO, between: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        between()
        yield chunk


def _readable(sha256: str, source: BinaryIO) -> Iterator[bytes]:
    """Read stored bytes so that a bad sector is told of the file that it lies in, and not taken for a fault of where they are copied to."""
    while True:
        try:
            chunk = source.read(CHUNK)
        except OSError as error:
            raise _unreadable(sha256, error) from error
        if not chunk:
            return
        yield chunk


def flush_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def explained(error: OSError, root: Path) -> QuadgateError:
    """Turn an error of the file system into a sentence with the place and the free space."""
    free = shutil.disk_usage(root).free if root.exists() else 0
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return QuadgateError(
            "disk_full",
            N_("The evidence store {path} is full ({free} bytes free). Nothing was stored, nothing was lost: make room, then retry the step."),
            path=str(root),
            free=free,
        )
    return QuadgateError(
        "store_failed",
        N_("The evidence store {path} could not be written ({free} bytes free): {reason}. Nothing was stored; put this right, then retry the step."),
        path=str(root),
        free=free,
        reason=said(error),
    )


def _unreadable(sha256: str, error: OSError) -> QuadgateError:
    """Say that the disk refused; what was stored says nothing then, neither good nor bad."""
    return QuadgateError(
        "store_unreadable",
        N_("The stored file {path} cannot be read: {reason}. Put this right, then try again."),
        path=str(path_of(sha256)),
        reason=said(error),
    )


def _altered(sha256: str) -> QuadgateError:
    return QuadgateError(
        "store_altered",
        N_("The stored file {path} is no longer what its name says: it was altered or damaged. Restore it from a backup."),
        path=str(path_of(sha256)),
    )
