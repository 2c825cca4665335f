"""Which keys of `targets.engine.physics` and `targets.arms` anything reads, so that a typing error is refused at entry and not an hour into a gate.

The names are those of the roles that read them (lab_engine, arm, offload); roles are no part of the service, so a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from gates.plan_model import MEDIUM_KEYS
from gates.schema import Problems, join
from gates.text import Text

ARMS = ("recompute", "baseline", "candidate", "placebo", "baseline_tuned")
# What the simulated engine is told of itself (roles/lab_engine, config.py): rates in tokens per second, times in seconds, sizes in bytes and tokens.
PHYSICS = (
    "prefill_tokens_per_s",
    "decode_base_s",
    "decode_per_sequence_s",
    "kv_bytes_per_token",
    "block_tokens",
    "hbm_tokens",
    "max_model_len",
    "max_num_seqs",
    "service_spread",
)
DIALECTS = ("vllm", "sglang")  # whose counters and endpoints the simulated engine imitates
NATURE = ("read_bytes_per_s", "cache_bytes_per_s")  # what the simulated medium is able to do
CPU = ("max_num_batched_tokens", "max_model_len", "block_size", "kvcache_space_gib")  # what an arm of vLLM on the CPU may set otherwise
# What an arm on real hardware may set otherwise than `targets.offload`: dotted keys of that section (roles/offload, settings.py).
OFFLOAD = (
    *("chunk_tokens", "hash", "hash_seed", "load_failure", "api_port", "server_port", "http_port", "kind", "storage"),
    *("l0.memory_fraction", "l0.prefix_caching", "l0.blocks", "l1.gib", "l1.keep"),
    *("l2.gib", "l2.read_threads", "l2.write_threads", "l2.direct_io", "l2.buffer_mib"),
    *(f"mooncake.{key}" for key in ("master", "metadata", "protocol", "device", "segment_gib", "local_hostname", "start_master")),
)
OF_ARMS: Mapping[str, tuple[str, ...]] = {"lab": (*NATURE, *PHYSICS), "vllm_cpu": (*NATURE, *CPU), "vllm": OFFLOAD, "sglang": OFFLOAD}
FREE = "extra."  # below offload.extra the software's own names stand
_UNREAD = Text(": nothing would read it", "，不会被读取")


def check_engine_keys(targets: Any, problems: Problems) -> None:
    """Add a sentence for each key of a section `targets` that nothing would read, and for each figure that is no number.

    What has another shape altogether, and an unknown kind of engine, is said elsewhere.
    """
    engine, arms = (targets.get(key) if isinstance(targets, Mapping) else None for key in ("engine", "arms"))
    kind = str(engine.get("kind")) if isinstance(engine, Mapping) else ""
    if isinstance(engine, Mapping) and engine.get("start_timeout_s") is not None and not _is_number(engine["start_timeout_s"]):
        path = "targets.engine.start_timeout_s"  # the service itself reckons with it
        problems.expected(path, engine["start_timeout_s"], "seconds as a number, 0 or more", "以秒计的数，不小于 0")
    if isinstance(engine, Mapping) and kind == "lab" and engine.get("physics") is not None:
        _check_map(engine["physics"], "targets.engine.physics", PHYSICS, PHYSICS, problems)
    if isinstance(engine, Mapping) and engine.get("dialect") is not None and (kind != "lab" or engine["dialect"] not in DIALECTS):
        only = f"{' or '.join(DIALECTS)}, and only of kind lab"
        problems.expected("targets.engine.dialect", engine["dialect"], only, f"{' 或 '.join(DIALECTS)}，且仅限 lab 类型")
    for arm, keys in arms.items() if isinstance(arms, Mapping) else ():
        path = join("targets.arms", str(arm))
        if arm not in ARMS:
            problems.unknown("targets.arms", str(arm), ARMS, why=_UNREAD)
        elif kind in OF_ARMS and keys is not None:
            numbers = (*NATURE, *PHYSICS) if kind == "lab" else ()
            _check_map(keys, path, (*MEDIUM_KEYS, *OF_ARMS[kind]), numbers, problems, free=OF_ARMS[kind] is OFFLOAD)


def _check_map(given: Any, path: str, known: Iterable[str], numbers: Iterable[str], problems: Problems, *, free: bool = False) -> None:
    if not isinstance(given, Mapping):
        problems.expected(path, given, "a map", "映射")
        return
    for key, value in given.items():
        if key not in known and not (free and str(key).startswith(FREE)):
            problems.unknown(path, str(key), known, why=_UNREAD)
        elif key in numbers and not _is_number(value):
            problems.expected(join(path, str(key)), value, "a number, 0 or more", "不小于 0 的数")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and bool(value >= 0)
