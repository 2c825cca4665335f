"""Choose a Python from what a target listed, or advise which package brings one. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

PACKAGES = {
    "debian": "python3 (Debian 11 or newer)",
    "ubuntu": "python3.8 (Ubuntu 18.04) or python3 (20.04 or newer)",
    "rhel": "python39 (release 8) or python3 (9 or newer)",
    "centos": "python39 (release 8) or python3 (9 or newer)",
    "rocky": "python39 (release 8) or python3 (9 or newer)",
    "almalinux": "python39 (release 8) or python3 (9 or newer)",
    "openeuler": "python3 (22.03 or newer)",
    "anolis": "python39 (release 8) or python3 (23)",
    "kylin": "python3 (V10 SP3 or newer)",
    "sles": "python311",
}


def choice(listing: str, minimum: list[int]) -> str:
    """Return the path of the first listed Python that is new enough; the interpreter that was asked for stands first. Empty when none is."""
    for major, minor, path in _pythons(listing):
        if (major, minor) >= (minimum[0], minimum[1]):
            return path
    return ""


def advice(listing: str, minimum: list[int]) -> str:
    """Return the sentence for a target without a usable Python, in both languages ({en, zh-CN}): what was found, what is needed, which package."""
    found = ", ".join(f"{major}.{minor} at {path}" for major, minor, path in _pythons(listing)) or "none"
    words = next((line.split() for line in listing.splitlines() if line.startswith("os ")), ["os", "unknown", "-"])
    system = words[1] if len(words) > 1 else "unknown"
    package = PACKAGES.get(system, "of the distribution that brings it, e.g. python3.9 or newer")
    need = ".".join(str(n) for n in minimum)
    zh = (
        PACKAGES.get(system, "（由该发行版提供，如 python3.9 或更新版本）")
        .replace(" or newer", " 或更新版本")
        .replace(" or ", " 或 ")
        .replace("release ", "版本 ")
    )
    return json.dumps(
        {
            "en": f"Python {need} or newer is needed on this target; found: {found}. "
            f"Install the package {package}, or set ansible_python_interpreter to one that exists.",
            "zh-CN": f"目标主机需要 Python {need} 或更新版本；现有：{found if found != 'none' else '无'}。"
            f"请安装软件包 {zh}，或把 ansible_python_interpreter 设为已有的解释器。",
        },
        ensure_ascii=False,
    )


def _pythons(listing: str) -> list[tuple[int, int, str]]:
    rows = []
    for line in listing.splitlines():
        words = line.strip().split(" ", 3)
        if len(words) == 4 and words[0] == "python" and words[1].isdigit() and words[2].isdigit() and words[3].startswith("/"):
            rows.append((int(words[1]), int(words[2]), words[3]))
    return rows


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"preflight_choice": choice, "preflight_advice": advice}
