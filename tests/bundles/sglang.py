"""A page of counters as SGLang 0.5.23 writes it, from what the simulated world counted."""

from __future__ import annotations

from collections.abc import Mapping

REQUEST = 'engine_type="unified",model_name="lab"'
RANK = f'{REQUEST},moe_ep_rank="0",pp_rank="0",tp_rank="0"'
STORE = 'dp_rank="0",pp_rank="0",pp_size="1",storage_backend="HiCacheFile",tp_rank="0"'
SERVED = f'sglang:num_requests_total{{{REQUEST},is_streaming="true"}}'
PROMPT = f'sglang:prompt_tokens_total{{{REQUEST},is_streaming="true"}}'
TIER_HITS = f'sglang:prefill_effective_tokens_total{{mode="storage_hit",{RANK}}}'


def ledger(mode: str) -> str:
    """Return the series of one part of the scheduler's account."""
    return f'sglang:prefill_effective_tokens_total{{mode="{mode}",{RANK}}}'


def cached(source: str) -> str:
    """Return the series of one source of the account by requests."""
    return f'sglang:cached_tokens_total{{cache_source="{source}",{REQUEST}}}'


def lost(reason: str) -> str:
    """Return the series of what was found in the storage and did not become a usable prefetch."""
    return f'sglang:storage_prefetch_unfulfilled_tokens_total{{reason="{reason}",{STORE}}}'


def page(count: Mapping[str, int], *, kv_bytes: int, recovers: bool) -> dict[str, str]:
    """Return the series; those that appear only with their first count are left out before it, as on the real page."""
    computed, device, storage = count["local_compute"], count["local_cache_hit"], count["external_kv_transfer"]
    told = {
        PROMPT: count["prompt"],
        SERVED: count["served"],
        f'sglang:generation_tokens_total{{{REQUEST},is_streaming="true"}}': count["generated"],
        **{ledger(mode): value for mode, value in (("input", computed), ("device_hit", device), ("host_hit", 0), ("storage_hit", storage))},
        f"sglang:num_pages{{{RANK}}}": 320,
    }
    told |= {cached(source): value for source, value in (("device", device), ("storage", storage)) if value}
    if recovers:
        told |= {lost(reason): 0 for reason in ("deadline", "device_covered", "storage_transfer")}
        told |= {f"sglang:backuped_tokens_total{{{STORE}}}": count["stored"] // kv_bytes} if count["stored"] else {}
    return {series: f"{value}.0" for series, value in told.items()}
