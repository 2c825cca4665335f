"""Which packages an engine and its offload need, and whether every arm can be rendered. Pure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "roles" / "offload"))
from engine_stack import RELEASES, describe, image_of


def engine_packages(site: Mapping[str, Any]) -> list[str]:
    """Return the pinned requirements of targets.engine and targets.offload."""
    names = [str((site.get("engine") or {}).get("kind"))]
    offload = site.get("offload") or {}
    if str(offload.get("kind", "")).startswith("lmcache"):
        names.append("lmcache")
    if offload.get("storage") == "mooncake":
        names.append("mooncake-transfer-engine")
    return [f"{name}=={RELEASES[name]}" for name in names if name in RELEASES]


def rendered_arms(site: Mapping[str, Any], root: str) -> dict[str, Any]:
    """Return {arm: {connector, kv_tier files}} of every arm, so that a setting that cannot be is refused before anything is installed."""
    found = {}
    for arm, keys in (site.get("arms") or {}).items():
        medium = (keys or {}).get("mount_path")
        if medium and site.get("simulated") is False and medium not in (site.get("volume") or {}):
            raise ValueError(f"targets.arms.{arm}.mount_path is {medium}, and targets.volume describes no medium of that name. Describe it there.")
        place = {"kv_dir": f"{root}/kv/ARM", "folder": f"{root}/engine/ARM", "port": site["engine"].get("port")}
        made = describe(site["engine"], site.get("offload"), keys or {}, place)
        found[arm] = {"connector": made["connector"], "files": sorted(made["files"]), "processes": [p["name"] for p in made["processes"]]}
    return found


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"engine_packages": engine_packages, "engine_image": image_of, "rendered_arms": rendered_arms}
