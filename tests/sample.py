"""The sample of a new engagement, filled in as an engineer would."""

from __future__ import annotations

import re
from itertools import count

from app.web.starter import starter

REAL = {  # what an engineer writes over the places of the sample that are no free words
    "code": "ACME-2026-01",
    "address": "192.0.2.11",
    "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA",
    "image": f"vllm/vllm-openai-rocm@sha256:{'ab' * 32}",
    "model_dir": "/models/m",
}


def filled(locale: str = "en") -> str:
    """Return the sample of a new engagement with every place filled in."""
    number = count(1)

    def value(found: re.Match[str]) -> str:
        return found[1] + (REAL.get(found[2]) or f"{'l' if found[2] == 'login' else 'x'}{next(number) if found[2] == 'login' else ''}y")

    text = re.sub(r"((?<![a-z])([a-z_]+): )<[^<>]+>", value, starter(locale))
    return text.replace("[<version>]", '["1"]').replace("[<固件版本>]", '["1"]')
