"""The key that a driver and the attendant on its engine's host share: one of its own for each job, and the same at each start of it.

It is derived from a secret of this node, so nobody has to keep it: it travels in the run's own 0600 variables, on stdin to both ends, and is
written nowhere. A node with another secret that takes a job over adopts what runs and needs no key.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from app.settings import settings

SECRET_BYTES = 32


def key_of(job_id: str) -> str:
    """Return the key of a job, 64 hexadecimal digits."""
    return hmac.new(_secret(settings().state_dir / "attend.secret"), f"attend:{job_id}".encode(), hashlib.sha256).hexdigest()


def _secret(path: Path) -> bytes:
    """Return the secret of this node; the first who needs it makes it, whole or not at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(SECRET_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was first, and its secret holds
                os.link(temporary, path)
        finally:
            temporary.unlink()
    found = path.read_bytes()
    if len(found) != SECRET_BYTES:
        raise ValueError(f"{path} holds {len(found)} bytes and not {SECRET_BYTES}; remove it, and a new one is made.")
    return found
