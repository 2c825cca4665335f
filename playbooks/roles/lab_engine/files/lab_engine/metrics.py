"""Counters and gauges under the names of vLLM, or of the engine that this one is to be taken for, in the text format that Prometheus reads."""

from __future__ import annotations

import os
import time
from typing import Dict, Iterator, List, Tuple

from . import sglang
from .config import Config

SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
REASONS = ("stop", "length", "abort", "error")


class Metrics:
    """What this engine counts, since its start."""

    def __init__(self, config: Config) -> None:
        self.model, self.blocks, self.block_tokens = config.model, config.num_blocks, config.block_tokens
        self.kv_bytes_per_token, self.has_tier = config.kv_bytes_per_token, config.tier is not None
        self._dialect = config.dialect
        self._started = time.time()
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.prefix_queries = 0
        self.prefix_hits = 0
        self.external_queries = 0
        self.external_hits = 0
        self.by_source: Dict[str, int] = dict.fromkeys(SOURCES, 0)
        self.success: Dict[str, int] = dict.fromkeys(REASONS, 0)
        self.load_bytes = 0
        self.load_failures = 0
        self.store_bytes = 0
        self.running = 0
        self.waiting = 0
        self.kv_usage = 0.0

    def prompt(self, local: int, external: int, computed: int, looked_up: int) -> None:
        """Count one prompt by where its tokens came from; `looked_up` tokens were asked of the external tier."""
        total = local + external + computed
        self.prompt_tokens += total
        self.prefix_queries += total
        self.prefix_hits += local
        self.external_queries += looked_up
        self.external_hits += external
        for source, count in zip(SOURCES, (computed, local, external)):
            self.by_source[source] += count

    def text(self) -> str:
        """Return the page `/metrics`."""
        lines: List[str] = []
        for name, kind, labels, value in self._rows() if self._dialect == "vllm" else sglang.rows(self):
            if not lines or not lines[-1].startswith(name + "{"):
                lines.append(f"# TYPE {name} {kind}")
            lines.append(f"{name}{labels} {value}")
        return "\n".join(lines) + "\n"

    def _rows(self) -> Iterator[Tuple[str, str, str, str]]:
        own = f'engine="0",model_name="{self.model}"'
        cache = f'block_size="{self.block_tokens}",num_gpu_blocks="{self.blocks}"'
        plain = {
            "prompt_tokens_total": self.prompt_tokens,
            "generation_tokens_total": self.generation_tokens,
            "prefix_cache_queries_total": self.prefix_queries,
            "prefix_cache_hits_total": self.prefix_hits,
            "external_prefix_cache_queries_total": self.external_queries,
            "external_prefix_cache_hits_total": self.external_hits,
            "kv_offload_load_bytes_total": self.load_bytes,
            "kv_offload_load_failures_total": self.load_failures,
            "kv_offload_store_bytes_total": self.store_bytes,
        }
        for name, count in plain.items():
            yield f"vllm:{name}", "counter", f"{{{own}}}", f"{count}.0"
        for source, count in self.by_source.items():
            yield "vllm:prompt_tokens_by_source_total", "counter", f'{{{own},source="{source}"}}', f"{count}.0"
        for reason, count in self.success.items():
            yield "vllm:request_success_total", "counter", f'{{{own},finished_reason="{reason}"}}', f"{count}.0"
        for name, gauge in (("num_requests_running", self.running), ("num_requests_waiting", self.waiting), ("kv_cache_usage_perc", self.kv_usage)):
            yield f"vllm:{name}", "gauge", f"{{{own}}}", f"{float(gauge)}"
        yield "vllm:cache_config_info", "gauge", f"{{{cache},{own}}}", "1.0"
        yield "process_start_time_seconds", "gauge", "", f"{self._started:.3f}"
        yield "process_resident_memory_bytes", "gauge", "", f"{resident_bytes()}.0"


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
