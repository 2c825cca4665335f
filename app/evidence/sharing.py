"""Whether several machines have one evidence store: each shows a file of its own in it, and looks there for what the others show.

The file has a name that nobody can guess, new at every start of a worker, so a copy of the folder that was made before shows nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from app.evidence.store import explained, flush_folder
from app.kit.db import new_id
from app.settings import settings


def show(node: str) -> str:
    """Write a new file that shows that this node has this store, and return its name. Raises QuadgateError when the store takes no write."""
    token = new_id()
    try:
        path = _path(token)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{node}\n")
            file.flush()
            os.fsync(file.fileno())
        flush_folder(path.parent)
    except OSError as error:
        raise explained(error, settings().evidence_dir) from error
    return token


def shown(token: str | None) -> bool:
    """Tell whether the store of this machine has the file that a node showed. A store that does not answer shows nothing."""
    try:
        return bool(token) and _path(str(token)).is_file()
    except OSError:
        return False


def withdraw(token: str | None) -> None:
    """Take away a file that was shown, in whose place there is another."""
    if token:
        _path(token).unlink(missing_ok=True)


def _path(token: str) -> Path:
    return settings().evidence_dir / "nodes" / token
