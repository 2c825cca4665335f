"""Can the site prove that an array's cache was cold, where the plan says so? Asked before an attempt starts, not after its last run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gates.plan import Plan
from gates.text import Text

JUDGED_AT = ("G2", "G3")
OWN_STATS = "lab"  # the kind of engine that keeps the statistics of its simulated array by itself
_REFUSED = Text(
    "The plan says arms.array_cache: cold, and nothing could prove it: targets.engine.array_stats names no statistics for {media}. Name a file or an "
    "http address with host_read_bytes and media_read_bytes for each (see the guide to hardware), or agree on as_delivered in a new plan revision.",
    "计划约定 arms.array_cache: cold，但无从证明：targets.engine.array_stats 未给出 {media} 的统计。请为各挂载点指定含 host_read_bytes 与 "
    "media_read_bytes 的文件或 http 地址（见硬件指南），或以新的计划修订版约定 as_delivered。",
)
_NEVER = Text(
    "The plan says arms.array_cache: cold, and the engine of kind {kind} stands on no array whose cache could be told. Agree on as_delivered in "
    "a new plan revision.",
    "计划约定 arms.array_cache: cold，但 {kind} 类引擎没有可读取缓存统计的阵列。请以新的计划修订版约定 as_delivered。",
)


def refusal(plan: Plan, gate: str, targets: Mapping[str, Any]) -> Text | None:
    """Return why an attempt at this gate could only end inconclusive for want of the array's statistics, or None.

    Every arm that recovers KV needs them for the medium that it is mounted from: an NFS server has a cache too. An arm that the targets do not
    describe is refused elsewhere.
    """
    if gate not in JUDGED_AT or plan.arms.array_cache != "cold":
        return None
    engine, arms = (value if isinstance(value := targets.get(key), Mapping) else {} for key in ("engine", "arms"))
    kind, stats = str(engine.get("kind")), engine.get("array_stats")
    if kind == OWN_STATS:
        return None
    used = ["baseline"] if gate == "G2" else [*plan.arms.order, *(arm for arm, _ in plan.arms.beside)]
    media: dict[str, None] = {}
    for arm in used:
        keys = arms.get("baseline" if arm == "baseline_tuned" else arm)
        if not isinstance(keys, Mapping) or not plan.arms.recovers(arm):
            continue
        mount = keys.get("mount_path")
        if not (mount and isinstance(stats, Mapping) and stats.get(mount)):
            media[str(mount or f"targets.arms.{arm}")] = None
    if not media:
        return None
    return _NEVER.fill(kind=kind) if kind == "vllm_cpu" else _REFUSED.fill(media=", ".join(media))
