"""What each engine calls its counters: one table, read by the judgement and by the probe on the target. Data only.

Everybody asks for a quantity (`prompt_tokens`); here stands which series tells it. A quantity that an engine's table does not have is one that the
engine cannot tell, and what needs it is unknown, never assumed. The probe reads this very file through a link in its own folder: nothing newer than
Python 3.8, and nothing of this package.

Sources: vLLM 0.33.0 (v1/metrics/loggers.py, the offloading and tiering connectors). SGLang 0.5.23 (srt/observability/metrics_collector.py): its
scheduler adds to prefill_effective_tokens_total with each prefill batch, all four modes from 0 on, its tokenizer to cached_tokens_total,
prompt_tokens_total and num_requests_total as a request ends. Every pipeline rank counts the same tokens, so those of rank 0 are taken.
"""

from __future__ import annotations

from collections.abc import Iterable

# Gauges, of now.
RUNNING = "requests_running"
WAITING = "requests_waiting"
IN_USE = "cache_in_use"  # share of the GPU cache that requests hold
# Counters, from the start of one process.
SERVED = "requests_served"  # requests that ended, for whatever reason
PROMPT = "prompt_tokens"
GENERATED = "output_tokens"
OWN_HITS = "own_hits"  # prompt tokens that the engine still held itself: in its GPU cache, or in its host memory
TIER_HITS = "tier_hits"  # prompt tokens that came from the external tier
LOAD_FAILURES = "load_failures"  # KV that was found in the tier and could not be loaded: loads of vLLM, tokens of SGLang
STORE_BYTES = "store_bytes"
STORED_TOKENS = "stored_tokens"  # tokens whose KV was written to the tier, or lay there already
# The ledger: what became of each prompt token. Together they are all prompt tokens, or there is no account.
COMPUTED = "tokens_computed"
FROM_GPU = "tokens_from_gpu"
FROM_HOST = "tokens_from_host"  # of the engine's own host memory, which is no external tier
FROM_TIER = "tokens_from_tier"
LEDGER = (COMPUTED, FROM_GPU, FROM_HOST, FROM_TIER)
# A second account, kept by another process of the engine: it must agree with the ledger. A series that is not there yet counts 0.
CACHED_BY_REQUEST = "cached_by_request"  # prompt tokens that were not computed, wherever they came from
TIER_BY_REQUEST = "tier_by_request"

_SHARE = "vllm:prompt_tokens_by_source_total"
_PREFILL = "sglang:prefill_effective_tokens_total"
_FIRST_STAGE = {"pp_rank": "0"}

# engine -> quantity -> the series that add up to it, each as (name, labels that it must carry)
SERIES: dict[str, dict[str, tuple[tuple[str, dict[str, str]], ...]]] = {
    "vllm": {
        RUNNING: (("vllm:num_requests_running", {}),),
        WAITING: (("vllm:num_requests_waiting", {}),),
        IN_USE: (("vllm:kv_cache_usage_perc", {}),),
        SERVED: (("vllm:request_success_total", {}),),
        PROMPT: (("vllm:prompt_tokens_total", {}),),
        GENERATED: (("vllm:generation_tokens_total", {}),),
        OWN_HITS: (("vllm:prefix_cache_hits_total", {}),),
        TIER_HITS: (("vllm:external_prefix_cache_hits_total", {}),),
        # The first is the simulated engine's, the second of the file-system tier of vLLM's own offload.
        LOAD_FAILURES: (("vllm:kv_offload_load_failures_total", {}), ("vllm:kv_offload_tiering_promotion_job_failures_total", {})),
        STORE_BYTES: (("vllm:kv_offload_store_bytes_total", {}),),
        COMPUTED: ((_SHARE, {"source": "local_compute"}),),
        FROM_GPU: ((_SHARE, {"source": "local_cache_hit"}),),
        FROM_TIER: ((_SHARE, {"source": "external_kv_transfer"}),),
    },
    "sglang": {
        RUNNING: (("sglang:num_running_reqs", {}),),
        WAITING: (("sglang:num_queue_reqs", {}),),
        IN_USE: (("sglang:token_usage", {}),),
        SERVED: (("sglang:num_requests_total", {}),),
        PROMPT: (("sglang:prompt_tokens_total", {}),),
        GENERATED: (("sglang:generation_tokens_total", {}),),
        OWN_HITS: ((_PREFILL, {"mode": "device_hit", **_FIRST_STAGE}), (_PREFILL, {"mode": "host_hit", **_FIRST_STAGE})),
        TIER_HITS: ((_PREFILL, {"mode": "storage_hit", **_FIRST_STAGE}),),
        LOAD_FAILURES: (("sglang:storage_prefetch_unfulfilled_tokens_total", {"reason": "storage_transfer"}),),
        STORED_TOKENS: (("sglang:backuped_tokens_total", {"tp_rank": "0", **_FIRST_STAGE}),),
        COMPUTED: ((_PREFILL, {"mode": "input", **_FIRST_STAGE}),),
        FROM_GPU: ((_PREFILL, {"mode": "device_hit", **_FIRST_STAGE}),),
        FROM_HOST: ((_PREFILL, {"mode": "host_hit", **_FIRST_STAGE}),),
        FROM_TIER: ((_PREFILL, {"mode": "storage_hit", **_FIRST_STAGE}),),
        CACHED_BY_REQUEST: (("sglang:cached_tokens_total", {}),),
        TIER_BY_REQUEST: (("sglang:cached_tokens_total", {"cache_source": "storage"}),),
    },
}
FAMILIES = tuple(SERIES)  # each engine's series begin with its name and a colon

# Facts of the engine that it tells on the same page: (series, label); without a label the value itself is the fact, the same of every rank.
GPU_BLOCKS, BLOCK_TOKENS = "num_gpu_blocks", "block_tokens"
FACTS: dict[str, dict[str, tuple[str, str]]] = {
    "vllm": {GPU_BLOCKS: ("vllm:cache_config_info", "num_gpu_blocks"), BLOCK_TOKENS: ("vllm:cache_config_info", "block_size")},
    "sglang": {GPU_BLOCKS: ("sglang:num_pages", ""), BLOCK_TOKENS: ("sglang:page_size", "")},
}

COUNTED_IN_TOKENS = ("sglang",)  # whose LOAD_FAILURES are tokens

# Parts of a name that count KV that was found and could not be loaded: of vLLM's offload (jobs of its tier), of LMCache.
# A series with labels comes into being with its first failure.
FAILED_LOADS = ("kv_offload_load_failures", "promotion_job_failures", "get_blocking_failed")
# Parts of a name that count what failed to be stored or found no room: of vLLM's offload, of LMCache, of HiCache.
STORE_FAILURES = ("put_failed", "allocation_failure", "store_failures", "stores_dropped", "hicache_backup_dropped", "hicache_dropped")

# How the endpoint that empties the GPU cache says that it did: vLLM by {"success": true}, SGLang in words (HTTP 400 while requests are under way).
RESET_WORDS = {"sglang": "Cache flushed."}
# What /server_info of SGLang holds beside its settings: the state of now, what a start makes anew, and secrets.
NO_SETTING = {
    "sglang": r"internal_states|startup_time|launch_command|status|version|frontend|kv_events|kv_event_sources|max_total_num_tokens|max_req_input_len"
    r"|hicache_object_layout|.*_port|dist_init_addr|.*(api_key|keyfile|certfile|password|secret|watermark).*"
}


def family_of(names: Iterable[str]) -> str | None:
    """Return whose series stand among these names (`vllm`, `sglang`); None where it is nobody's, or several engines'."""
    found = {family for name in names for family in FAMILIES if name.startswith(family + ":")}
    return found.pop() if len(found) == 1 else None
