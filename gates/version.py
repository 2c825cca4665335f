"""Which judge this is: its version, and the hash over its own sources, so that a verdict names the rules it was reached by."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

JUDGE_VERSION = "0.1.0"
_ROOT = Path(__file__).resolve().parent


@lru_cache(maxsize=1)
def rules_hash() -> str:
    """Return `sha256:<hex>` over the sources of gates/ (Python and YAML, by relative path, in order), the same on every machine."""
    digest = hashlib.sha256()
    files = sorted(
        (path.relative_to(_ROOT).as_posix(), path)
        for path in _ROOT.rglob("*")
        if path.suffix in (".py", ".yaml") and "__pycache__" not in path.parts and path.is_file()
    )
    for name, path in files:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return "sha256:" + digest.hexdigest()


RULES_HASH = rules_hash()
