"""Several instances of one model on one host (TP4 x 2): the same engine as often as asked for, each on accelerators and ports of its own.

They share the medium, and the software beside the engine where there is such a process. The launcher starts and ends them together.
"""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from engine_stack import offload as offloads
from engine_stack.describe import describe
from engine_stack.settings import DEFAULTS, settings_of

VISIBLE = {"rocm": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES", "ascend": "ASCEND_RT_VISIBLE_DEVICES"}


def describe_all(
    engine: Mapping[str, Any], offload: Optional[Mapping[str, Any]], keys: Mapping[str, Any], place: Mapping[str, Any]
) -> Dict[str, Any]:
    """Return what describe() returns, of `place["instances"]` instances. Raises ValueError with a sentence."""
    count = int(place.get("instances") or 1)
    if count == 1:
        return describe(engine, offload, keys, place)
    settings = settings_of({**engine, "port": place.get("port") or engine.get("port")}, offload, keys)
    each = offloads.workers(settings)
    rows = [_one(engine, offload, keys, place, n, each) for n in range(count)]
    found = {**rows[0], "software": {**rows[0]["software"], "instances": count}, "files": {}}
    beside = rows[0]["processes"][:-1]
    found["processes"] = [*beside, *(row["processes"][-1] for row in rows)]
    for row in rows:
        found["files"].update(row["files"])
    found["metrics_urls"] = list(dict.fromkeys(url for row in rows for url in row["metrics_urls"]))
    caches = rows[0].get("caches") or {}
    shared = bool(beside)
    found["caches"] = {**caches, "l1_bytes": int(caches.get("l1_bytes") or 0) * (1 if shared else count)}
    return found


def _one(
    engine: Mapping[str, Any], offload: Optional[Mapping[str, Any]], keys: Mapping[str, Any], place: Mapping[str, Any], n: int, each: int
) -> Dict[str, Any]:
    """Return the n-th instance: its port, its accelerators, and a configuration of its own where the offload opens ports in the engine's workers."""
    port, first = int(place["port"]) + n, n * each
    own: Dict[str, Any] = {**engine, "port": port, "instance": n, "first_device": first}
    if variable := VISIBLE.get(str(engine.get("accelerator"))):
        own["env"] = {**(engine.get("env") or {}), variable: ",".join(str(first + k) for k in range(each))}
    mine = dict(offload or {})
    if n and mine.get("kind") == "lmcache":
        mine["api_port"] = int(mine.get("api_port") or DEFAULTS["api_port"]) + n * (each + 1)  # one server of each worker, behind the scheduler's
    sub = f"instance-{n}/" if n else ""
    row = describe(own, mine or None, keys, {**place, "port": port, "folder": f"{place['folder']}/{sub}".rstrip("/")})
    return {**row, "files": {f"{sub}{name}": content for name, content in row["files"].items()}}
