"""The settings of one arm: what the engagement says under `offload`, with what the arm says otherwise. Errors are sentences that name the field."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

# The releases whose parsers `make test-config` asks. A site may pin others under engine.packages, and then has to run that lane for them.
RELEASES = {"vllm": "0.33.0", "lmcache": "0.5.6", "sglang": "0.5.23", "mooncake-transfer-engine": "0.3.13.post1"}

ENGINES = ("vllm", "sglang")
ACCELERATORS = ("rocm", "cuda", "ascend", "cpu")
# offload.kind -> what may stand in offload.storage, the first being the default. Plain `local_disk` of LMCache is not among them: its index lives in
# memory, so nothing is found again after a restart, and a cold recovery could never be measured.
KINDS: Dict[str, Tuple[str, ...]] = {
    "lmcache": ("fs", "gds"),
    "lmcache_mp": ("fs_native", "fs"),
    "native": ("fs",),
    "hicache": ("file", "mooncake"),
}
OF_ENGINE = {"vllm": ("lmcache", "lmcache_mp", "native"), "sglang": ("hicache",)}
DEFAULTS: Dict[str, Any] = {
    "chunk_tokens": 256,
    "hash": "sha256_cbor",
    "hash_seed": 0,
    "load_failure": "fail",
    "api_port": 6999,
    "server_port": 5555,
    "http_port": 8080,
    "l0": {"memory_fraction": 0.9, "prefix_caching": True, "blocks": None},
    "l1": {"gib": 20, "keep": False},
    "l2": {"gib": 0, "read_threads": None, "write_threads": None, "direct_io": True, "buffer_mib": 4096},
    "mooncake": {
        "master": "",
        "metadata": "P2PHANDSHAKE",
        "protocol": "rdma",
        "device": "",
        "segment_gib": 0,
        "local_hostname": "",
        "start_master": True,
    },
}
COOLS = ("restart", "reset")  # how the GPU cache is made cold before each run
MEDIUM = ("mount_path", "device", "transport", "mount_options", "address", "model_dir")


@dataclass(frozen=True)
class Settings:
    """Engine and offload of one arm. `kind` is None where the arm has no external KV."""

    engine: Mapping[str, Any]
    kind: Optional[str]
    storage: Optional[str]
    values: Mapping[str, Any] = field(default_factory=dict)

    def tier(self, name: str) -> Mapping[str, Any]:
        """Return the settings of l0, l1 or l2."""
        found: Mapping[str, Any] = self.values[name]
        return found


def settings_of(engine: Mapping[str, Any], offload: Optional[Mapping[str, Any]], keys: Mapping[str, Any]) -> Settings:
    """Return the settings of an arm. Raises ValueError with a sentence."""
    kind_of_engine = str(engine.get("kind"))
    if engine.get("accelerator") not in ACCELERATORS:
        raise ValueError(f"targets.engine.accelerator is {engine.get('accelerator')!r}; this service knows {', '.join(ACCELERATORS)}.")
    for name in ("model", "model_dir", "port"):
        if not engine.get(name):
            raise ValueError(f"targets.engine.{name} is missing; an engine of kind {kind_of_engine} needs it.")
    values = _merged(DEFAULTS, offload or {}, "targets.offload")
    _refuse_a_reset_that_proves_nothing(engine, values)
    for key, value in keys.items():
        if key not in MEDIUM:
            _set(values, key, value)
    if not keys.get("mount_path"):
        return Settings(engine, None, None, values)
    kind, storage = values.get("kind"), values.get("storage")
    if kind not in OF_ENGINE[kind_of_engine]:
        raise ValueError(f"targets.offload.kind is {kind!r}; with the engine {kind_of_engine} it is one of {', '.join(OF_ENGINE[kind_of_engine])}.")
    storage = storage or KINDS[kind][0]
    if storage not in KINDS[kind]:
        why = " Its index is lost at each restart, so it cannot serve a cold recovery." if storage == "local_disk" else ""
        raise ValueError(f"targets.offload.storage is {storage!r}; with {kind} it is one of {', '.join(KINDS[kind])}.{why}")
    _refuse_what_cannot_be(kind, storage, values)
    return Settings(engine, kind, storage, values)


def _refuse_a_reset_that_proves_nothing(engine: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse `engine.cool: reset` where the software says success and keeps what it has."""
    cool, kind = str(engine.get("cool") or "restart"), values.get("kind")
    if cool not in COOLS:
        raise ValueError(f"targets.engine.cool is {cool!r}; it is one of {', '.join(COOLS)}.")
    if cool == "restart":
        return
    if engine.get("kind") == "sglang" and kind in (None, "hicache") and values.get("storage") != "mooncake":
        return  # its flush empties GPU and host memory, and is open whether or not it is used
    if engine.get("kind") != "vllm" or kind not in (None, "native"):
        raise ValueError(
            f"targets.engine.cool is reset, and with {engine.get('kind')} and offload {kind or 'none'} a reset says success without emptying what "
            "serves. It is for vllm without offload or with offload native, and for sglang without offload or with offload hicache on files; leave "
            "it out, then the engine is restarted before each run."
        )


def _refuse_what_cannot_be(kind: str, storage: str, values: Mapping[str, Any]) -> None:
    """Refuse a setting that the software would take and not obey."""
    l1, l2 = values["l1"], values["l2"]
    if kind in ("lmcache", "lmcache_mp") and storage == "fs" and l2["read_threads"]:
        raise ValueError(
            f"targets.offload.l2.read_threads is {l2['read_threads']}, but {kind} with storage fs reads with the threads of Python's default "
            "executor (CPUs + 4, at most 32) and has no setting for it. Leave it out, or use gds, lmcache_mp with fs_native, or native."
        )
    if kind == "native" and not l1["keep"]:
        raise ValueError(
            "targets.offload.l1.keep is false, but vLLM's own tiering always keeps in host memory what passes through it. Set it to true; the "
            "restart before each measured run empties it."
        )
    if float(l1["gib"]) <= 0:
        raise ValueError(f"targets.offload.l1.gib is {l1['gib']}; every load passes through host memory, so it must be more than 0.")
    if values["chunk_tokens"] <= 0 or values["chunk_tokens"] % 16:
        raise ValueError(f"targets.offload.chunk_tokens is {values['chunk_tokens']}; it must be a multiple of 16, the engine's smallest block.")
    if storage == "mooncake" and not values["mooncake"]["master"]:
        raise ValueError("targets.offload.mooncake.master is missing; give it as HOST:PORT of the store's master.")


def _merged(base: Mapping[str, Any], given: Mapping[str, Any], path: str) -> Dict[str, Any]:
    """Return the defaults with what was given; an unknown key is an error, since nothing would read it."""
    known = {**base, **({"kind": None, "storage": None, "extra": {}} if path == "targets.offload" else {})}
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"{path} has {', '.join(unknown)}, which no software here reads; known are {', '.join(sorted(known))}.")
    out = copy.deepcopy(known)
    for key, value in given.items():
        out[key] = _merged(known[key], value or {}, f"{path}.{key}") if isinstance(known[key], dict) and key != "extra" else value
    return out


def _set(values: Dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of an arm, such as `l2.read_threads`."""
    where: Any = values
    *folders, last = key.split(".")
    for name in folders:
        where = where.get(name) if isinstance(where, dict) else None
    if not isinstance(where, dict) or last not in where:
        raise ValueError(f"The arm has the key {key}, which is neither of the medium ({', '.join(MEDIUM)}) nor a key of targets.offload.")
    where[last] = value
