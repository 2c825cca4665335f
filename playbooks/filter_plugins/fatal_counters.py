"""Which counters of the plan a host must be able to tell, and where they may come from. Pure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "roles" / "arm" / "filter_plugins"))
from arm_engine import array_stats
from arm_job import storage_ports


def counters_order(site: Mapping[str, Any], plan: Mapping[str, Any], host: str) -> dict[str, Any]:
    """Return what `probe counters` checks on a host when the engine is deployed: every fatal counter of the plan must have a source there.

    The simulated engine's array keeps all of them, and makes its file when it starts.
    """
    engine = site.get("engine") or {}
    wanted = [] if engine.get("kind") == "lab" else list((plan.get("g4") or {}).get("fatal_counters") or [])
    candidate = ((site.get("arms") or {}).get("candidate") or {}).get("mount_path")
    stats = array_stats(engine, str(candidate)) if candidate else None
    return {"host": host, "wanted": wanted, "array_stats": stats, "ports": storage_ports(site, host) or None}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"counters_order": counters_order}
