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
    return every(found, family)[0]


def every(found: int, family: Sequence[int]) -> List[int]:
    """Return the processes that are engines, in the order in which they were started; `found` alone where none names one."""
    return [pid for pid in family if any(_MODULE.match(word) for word in proc.command_line(pid))] or [found]


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


def hash_seed(pid: int, procfs: str = "/proc") -> Optional[str]:
    """Return PYTHONHASHSEED of a process, empty where it has none; None where its environment may not be read. No other variable is looked at."""
    try:
        with open("%s/%d/environ" % (procfs, pid), "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    found = [word.partition(b"=")[2] for word in words if word.startswith(b"PYTHONHASHSEED=")]
    if not found and not any(word.startswith(b"PATH=") for word in words):
        return None  # a process that wrote its title over its environment tells nothing
    return found[0].decode("utf-8", "replace")[:40] if found else ""


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
