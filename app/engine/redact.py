"""Taking secrets out of events at capture. Pure, standard library only: the host process uses it while a playbook runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "[hidden]"
_KEYS = re.compile(
    r"(?i)^(.*_)?(pass|password|passwd|passphrase|secret|secret_key|api_?key|access_?key|private_?key|authorization|credentials?)$"
    r"|^(token|auth_token|access_token|api_token|bearer_token|hf_token|refresh_token)$"
)
# `key_file`-like names hold paths, which people need to see; token counts of a workload are no secrets.
_PATTERNS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?i)(?<=authorization: )(?:bearer|basic) [^\s\"']+"),
    re.compile(r"(?i)(?<=password=)[^\s\"'&]+|(?<=passwd=)[^\s\"'&]+|(?<=secret=)[^\s\"'&]+"),
    re.compile(r"\bhf_[A-Za-z0-9]{20,}\b|\bgh[pousr]_[A-Za-z0-9]{30,}\b|\bAKIA[A-Z0-9]{16}\b"),
)
_DEPTH = 40


class Redactor:
    """Replaces known secret values, values under secret-looking keys, and texts that look like keys. `prefix`: of names in a round, left out."""

    def __init__(self, secrets: Iterable[str] = (), prefix: str = "") -> None:
        self._prefix = prefix
        written = {form for value in secrets if len(value) >= 4 for form in (value, *value.splitlines()) if len(form) >= 4}
        # Ansible prints results as JSON: a quote, a backslash or a Chinese character of a secret stands there in another spelling.
        escaped = {json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in written for ascii_only in (True, False)}
        self._known = sorted(written | escaped, key=len, reverse=True)

    def text(self, value: str) -> str:
        """Return a text without secrets."""
        for secret in self._known:
            value = value.replace(secret, HIDDEN)
        for pattern in _PATTERNS:
            value = pattern.sub(HIDDEN, value)
        return value.replace(self._prefix, "") if self._prefix else value

    def tree(self, value: Any, depth: int = 0) -> Any:
        """Return a JSON-like value without secrets; what is nested too deeply or is no JSON becomes text."""
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth > _DEPTH:
            return self.text(str(value))
        if isinstance(value, dict):
            return {self.text(str(k)): self._entry(str(k), v, depth) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(v, depth + 1) for v in value]
        return self.text(str(value))

    def _entry(self, key: str, value: Any, depth: int) -> Any:
        if isinstance(value, str) and value and _KEYS.match(key):
            return HIDDEN
        return self.tree(value, depth + 1)
