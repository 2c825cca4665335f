"""What an engine was started with: its own command line, and the hash of the model's configuration that this names."""

from __future__ import annotations

import hashlib
import os
import re
from typing import List, Optional, Sequence

from probe import proc

_MODULE = re.compile(r"(?:.*/)?(?:vllm|sglang)(?:\.[A-Za-z0-9_.]+)?$")
_MODEL = ("--model", "--model-path")
_SECRETS = ("--api-key", "--token", "--hf-token")


def own(found: int, family: Sequence[int]) -> int:
    """Return the process that is the engine itself: a launcher, or a container's client, only started it. `found` where none names an engine."""
    return next((pid for pid in family if any(_MODULE.match(word) for word in proc.command_line(pid))), found)


def without_secrets(argv: List[str]) -> List[str]:
    """Return a command line with the values of keys and tokens struck out."""
    out: List[str] = []
    for n, word in enumerate(argv):
        name = word.split("=", 1)[0]
        if n and argv[n - 1] in _SECRETS:
            out.append("***")
        else:
            out.append(name + "=***" if name in _SECRETS and "=" in word else word)
    return out


def model_config(pid: int, argv: Sequence[str], procfs: str = "/proc") -> Optional[str]:
    """Return the SHA-256 (hex) of config.json in the model's folder, as the engine's own root shows it; None where there is no such file."""
    folder = _model_folder(argv)
    if not folder or not folder.startswith("/"):
        return None
    for root in ("%s/%d/root" % (procfs, pid), ""):
        try:
            with open(os.path.join(root + folder, "config.json"), "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        except OSError:
            continue
    return None


def _model_folder(argv: Sequence[str]) -> str:
    for n, word in enumerate(argv):
        name, _, value = word.partition("=")
        if name in _MODEL:
            return value or (argv[n + 1] if n + 1 < len(argv) else "")
        if word == "serve" and n + 1 < len(argv) and not argv[n + 1].startswith("-"):
            return argv[n + 1]
    return ""
