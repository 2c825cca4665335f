"""How an engine speaks that is to be taken for SGLang 0.5.23: names and labels of its counters, its /server_info, its /flush_cache.

Series with a label for the cache source, and the count of stored tokens, come into being when they first count, as with SGLang; it runs
prometheus_client over several processes, so it has no series of a process.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, Tuple

from .config import Config

if TYPE_CHECKING:
    from .metrics import Metrics

FLUSHED = "Cache flushed.\nPlease check backend logs for more details. (When there are running or waiting requests, ...)\n"
REFUSED = "Flush cache failed.\n"
LOST = ("below_threshold", "host_capacity", "device_capacity", "storage_transfer", "deadline", "dropped")


def rows(m: "Metrics") -> Iterator[Tuple[str, str, str, str]]:
    """Yield (name, kind, labels, value) of every series."""
    request = f'engine_type="unified",model_name="{m.model}"'
    rank = f'{request},moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    for name, count in (("prompt_tokens", m.prompt_tokens), ("generation_tokens", m.generation_tokens), ("num_requests", sum(m.success.values()))):
        yield f"sglang:{name}_total", "counter", f'{{{request},is_streaming="false"}}', "0.0"  # of the request by which it warms itself at its start
        if count:
            yield f"sglang:{name}_total", "counter", f'{{{request},is_streaming="true"}}', f"{count}.0"
    computed, device, storage = m.by_source.values()
    for source, count in (("device", device), ("storage", storage)):
        if count:
            yield "sglang:cached_tokens_total", "counter", f'{{cache_source="{source}",{request}}}', f"{count}.0"
    for mode, count in (("input", computed), ("device_hit", device), ("host_hit", 0), ("storage_hit", storage)):
        yield "sglang:prefill_effective_tokens_total", "counter", f'{{mode="{mode}",{rank}}}', f"{count}.0"
    gauges = (("num_running_reqs", m.running), ("num_queue_reqs", m.waiting), ("token_usage", m.kv_usage))
    for name, gauge in (*gauges, ("page_size", m.block_tokens), ("num_pages", m.blocks)):
        yield f"sglang:{name}", "gauge", f"{{{rank}}}", f"{float(gauge)}"
    if m.has_tier:
        store = 'attn_cp_rank="0",attn_cp_size="1",dp_rank="0",pp_rank="0",pp_size="1",storage_backend="file",tp_rank="0"'
        if m.store_bytes:
            yield "sglang:backuped_tokens_total", "counter", f"{{{store}}}", f"{m.store_bytes // m.kv_bytes_per_token}.0"
        for reason in LOST:
            lost = m.load_failures * m.block_tokens if reason == "storage_transfer" else 0
            yield "sglang:storage_prefetch_unfulfilled_tokens_total", "counter", f'{{reason="{reason}",{store}}}', f"{lost}.0"


def server_info(config: Config, version: str) -> Dict[str, Any]:
    """Return what /server_info shows: settings beside the state of now and what a start makes anew, all on one level."""
    told_otherwise = ("model", "kv_bytes_per_token", "block_tokens", "hbm_tokens")
    own = {key: value for key, value in config.public()["config"].items() if key not in told_otherwise}
    tier = own.pop("tier")
    return {
        **own,
        "model_path": f"/models/{config.model}",
        "page_size": config.block_tokens,
        "enable_hierarchical_cache": tier is not None,
        "hicache_storage_backend": "file" if tier else None,
        "hicache_storage_backend_extra_config": tier,
        "nccl_port": 20000 + time.monotonic_ns() % 10000,
        "api_key": None,
        "internal_states": [{"last_gen_throughput": time.monotonic_ns() % 1000}],
        "startup_time": {"total": time.monotonic()},
        "version": version,
    }
