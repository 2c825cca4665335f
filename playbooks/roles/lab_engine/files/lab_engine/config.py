"""The configuration file of the engine: read, checked, and refused in sentences."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, Dict, Optional, Tuple, Type, TypeVar

T = TypeVar("T")
DIALECTS = ("vllm", "sglang")


class ConfigError(ValueError):
    """The configuration cannot be used; the message says which key and why."""


@dataclass(frozen=True)
class Array:
    """The cache of the storage behind the tier: what part of the reads it answers, how fast, and where it writes its counters."""

    cache_share: float = 0.0
    cache_bytes_per_s: float = 0.0  # 0: four times the rate of the medium
    stats_path: str = ""
    counters: Tuple[str, ...] = ()  # names of error counters that this storage keeps; it has had no error


@dataclass(frozen=True)
class Tier:
    """An external KV tier: a directory of real files, and the bandwidth of the medium that it plays."""

    path: str = ""
    read_bytes_per_s: float = 0.0
    array: Array = field(default_factory=Array)


@dataclass(frozen=True)
class Faults:
    """What is wrong with this engine. Every default means: nothing. Shares are of 1, chosen from the seed, the same at each start."""

    tier_slowdown: float = 0.0  # share of the tier's bandwidth that is missing
    read_ahead_share: float = 0.0  # share of the tier's files that a read-ahead keeps bringing into the page cache
    leak_bytes_per_request: int = 0  # real memory, touched and never given back
    drift_per_s: float = 0.0  # everything takes (1 + drift x seconds since start) times as long
    crash_after_loads: int = 0  # the process ends by itself after so many requests that loaded from the tier, once
    error_stream_share: float = 0.0  # of the requests that load from the tier: status 200, then an error event
    empty_stream_share: float = 0.0  # of the requests that load from the tier: status 200, a clean end, no token
    lost_kv_share: float = 0.0  # files of the tier that are gone when they are looked for
    corrupt_kv_share: float = 0.0  # files of the tier that hold other bytes than were computed


@dataclass(frozen=True)
class Config:
    """All that the engine runs with. Times in seconds, sizes in bytes, lengths in tokens."""

    model: str = "lab"
    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 0
    prefill_tokens_per_s: float = 1000000.0
    decode_base_s: float = 0.0005
    decode_per_sequence_s: float = 0.0
    kv_bytes_per_token: int = 16
    block_tokens: int = 4096
    hbm_tokens: int = 1310720
    max_model_len: int = 131072
    max_num_seqs: int = 256
    service_spread: float = 0.0  # standard deviation of the service times, as a share of their mean
    dialect: str = "vllm"  # whose names for counters and endpoints: vllm or sglang
    state_path: str = ""  # remembers that a crash has happened, so that it happens once
    tier: Optional[Tier] = None
    faults: Faults = field(default_factory=Faults)

    @property
    def block_bytes(self) -> int:
        """Return the size of one KV block, which is the size of one file of the tier."""
        return self.block_tokens * self.kv_bytes_per_token

    @property
    def num_blocks(self) -> int:
        """Return how many KV blocks fit into the memory of the GPU."""
        return self.hbm_tokens // self.block_tokens

    def public(self) -> Dict[str, Any]:
        """Return what `/config` shows. An engine does not know its own defects, so they are not part of it."""
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("tier", "faults", "state_path", "dialect")}
        shown["tier"] = {"path": self.tier.path, "read_bytes_per_s": self.tier.read_bytes_per_s} if self.tier else None
        return {
            "config": shown,
            "model": self.model,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "num_gpu_blocks": self.num_blocks,
            "block_tokens": self.block_tokens,
        }


def load(path: str) -> Config:
    """Read a configuration file. Raises ConfigError with a sentence."""
    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the configuration {path} cannot be read: {error}") from error
    return parse(data)


def parse(data: Dict[str, Any]) -> Config:
    """Check a configuration and return it. Raises ConfigError with a sentence that names the key."""
    values = dict(_object(data, "the configuration"))
    tier = values.pop("tier", None)
    faults = _build(Faults, values.pop("faults", None) or {}, "faults")
    if tier is not None:
        inner = dict(_object(tier, "tier"))
        array_values = dict(_object(inner.pop("array", None) or {}, "tier.array"))
        counters = tuple(str(name) for name in array_values.pop("counters", ()))
        array = _build(Array, dict(array_values, counters=counters), "tier.array")
        tier = _build(Tier, dict(inner, array=array), "tier")
        if not tier.path or tier.read_bytes_per_s <= 0:
            raise ConfigError("tier needs a path and read_bytes_per_s above 0")
    config = _build(Config, dict(values, tier=tier, faults=faults), "")
    for key in ("prefill_tokens_per_s", "decode_base_s", "kv_bytes_per_token", "block_tokens", "hbm_tokens", "max_num_seqs"):
        if getattr(config, key) <= 0:
            raise ConfigError(f"{key} must be above 0, it is {getattr(config, key)}")
    if config.dialect not in DIALECTS:
        raise ConfigError(f"dialect is {config.dialect!r}; this engine speaks as {' or '.join(DIALECTS)} does")
    if config.num_blocks < 1:
        raise ConfigError(f"hbm_tokens ({config.hbm_tokens}) holds not even one block of {config.block_tokens} tokens")
    return config


def _object(data: Any, where: str) -> Dict[str, Any]:
    if not isinstance(data, dict):
        raise ConfigError(f"{where} must be an object, it is {type(data).__name__}")
    return data


def _build(kind: Type[T], data: Dict[str, Any], where: str) -> T:
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for key, value in _object(data, where or "the configuration").items():
        name = f"{where}.{key}" if where else key
        if key not in known:
            raise ConfigError(f"{name} is not a key of this engine; it knows: {', '.join(sorted(known))}")
        default = known[key].default
        if isinstance(default, str) and not isinstance(value, str):
            raise ConfigError(f"{name} must be text, it is {value!r}")
        if isinstance(default, (int, float)) and (isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0):
            raise ConfigError(f"{name} must be a number, 0 or more, it is {value!r}")
    return kind(**data)
