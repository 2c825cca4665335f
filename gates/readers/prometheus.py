"""Series names of the Prometheus text format, and the engine's counters by the names that vLLM gives them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from gates.readers.strict import exact

_NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')
PROMPT_TOKENS = "vllm:prompt_tokens_total"
BY_SOURCE = "vllm:prompt_tokens_by_source_total"
SERVED = "vllm:request_success_total"  # requests that ended, by the reason why
GENERATED = "vllm:generation_tokens_total"
LOCAL_HITS = "vllm:prefix_cache_hits_total"
EXTERNAL_HITS = "vllm:external_prefix_cache_hits_total"
LOAD_FAILURES = "vllm:kv_offload_load_failures_total"
STORE_BYTES = "vllm:kv_offload_store_bytes_total"
# What failed to be stored, or found no room: vLLM's offload (allocation_failure, stores_dropped), LMCache (put_failed_count).
_STORE_FAILURES = re.compile(r"put_failed|allocation_failure|store_failures|stores_dropped")


@lru_cache(maxsize=4096)
def parse_series(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return (name, labels) of a series such as `a_total{b="c"}`, or None when it is none."""
    match = _NAME.fullmatch(text.strip())
    if not match:
        return None
    name, inner = match.groups()
    labels, position = [], 0
    while inner and position < len(inner):
        label = _LABEL.match(inner, position)
        if not label:
            return None
        labels.append((label[1], re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], label[2])))
        position = label.end()
    return name, tuple(labels)


def total(metrics: Any, name: str, **labels: str) -> Decimal | None:
    """Return the sum over the series of a name that carry these labels. None: no such series, or one that is no number."""
    if not isinstance(metrics, Mapping):
        return None
    values = []
    for series, raw in metrics.items():
        if not isinstance(series, str) or not series.startswith(name):
            continue
        parsed = parse_series(series)
        if parsed is None or parsed[0] != name or not labels.items() <= dict(parsed[1]).items():
            continue
        value = exact(raw)
        if value is None or value < 0:
            return None
        values.append(value)
    return sum(values, Decimal(0)) if values else None


def growth(before: Any, after: Any, name: str, **labels: str) -> Decimal | None:
    """Return by how much a counter grew. None where it is missing on either side, or went down (the process was another one)."""
    low, high = total(before, name, **labels), total(after, name, **labels)
    return None if low is None or high is None or high < low else high - low


def failures_to_store(metrics: Any) -> dict[str, Decimal]:
    """Return the counters of failures to store by their series, as far as an endpoint exposes any; one that is no number is left out."""
    rows = metrics.items() if isinstance(metrics, Mapping) else ()
    known = {str(series): exact(raw) for series, raw in rows if _STORE_FAILURES.search(str(series).partition("{")[0])}
    return {series: value for series, value in known.items() if value is not None and value >= 0}


@dataclass(frozen=True)
class Sources:
    """Where the prompt tokens of one phase came from, by the engine's own counters."""

    total: Decimal
    computed: Decimal
    hbm: Decimal
    external: Decimal


def sources(before: Any, after: Any, names: Collection[Any]) -> Sources | None:
    """Return the account of prompt tokens between two scrapes, or None when the engine's counters do not give a closed one.

    `names`: the names that this engine exposes, by its own engine.json. The labelled counter is the account where the engine has it; a label
    that does not exist yet is zero only while the labels that do exist add up to all prompt tokens. Only in an engine that does not have it
    do the older counters of local and external prefix hits give the account: they count what was found, not what was loaded.
    """
    everything = growth(before, after, PROMPT_TOKENS)
    if everything is None:
        return None
    if BY_SOURCE in names or total(before, BY_SOURCE) is not None or total(after, BY_SOURCE) is not None:
        parts = [_labelled(before, after, source) for source in ("local_compute", "local_cache_hit", "external_kv_transfer")]
        if any(p is None for p in parts):
            return None
        computed, hbm, external = (p or Decimal(0) for p in parts)
        return Sources(everything, computed, hbm, external) if computed + hbm + external == everything else None
    old_hbm, old_external = growth(before, after, LOCAL_HITS), growth(before, after, EXTERNAL_HITS)
    if old_hbm is None or old_external is None or old_hbm + old_external > everything:
        return None
    return Sources(everything, everything - old_hbm - old_external, old_hbm, old_external)


def _labelled(before: Any, after: Any, source: str) -> Decimal | None:
    high = total(after, BY_SOURCE, source=source)
    if high is None:
        return Decimal(0) if total(before, BY_SOURCE, source=source) is None else None
    low = total(before, BY_SOURCE, source=source)
    low = Decimal(0) if low is None else low
    return high - low if high >= low else None
