"""Each offload software with its own names for the tiers: {args, env, files, processes, connector, metrics_urls, idle}.

`files` are JSON documents by name below the folder of the configuration (JSON is YAML too, which is how LMCache reads it). `processes` are started
before the engine and end with it. `metrics_urls` are its own endpoints, `idle` what must be seen there before storing counts as ended (probe.idle).
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping

from engine_stack.settings import Settings

GIB = 1 << 30
LMCACHE_FILE = "lmcache.yaml"


def render(settings: Settings, kv_dir: str, folder: str) -> Dict[str, Any]:
    """Return what the arm's offload adds to the engine."""
    empty: Dict[str, Any] = {"args": [], "env": {}, "files": {}, "processes": [], "connector": None, "metrics_urls": [], "idle": None}
    if settings.kind is None:
        return empty
    found = {**empty, **_RENDER[settings.kind](settings, kv_dir)}
    if LMCACHE_FILE in found["files"]:
        found["env"]["LMCACHE_CONFIG_FILE"] = f"{folder}/{LMCACHE_FILE}"
    return found


def transfer(connector: str, settings: Settings, extra: Mapping[str, Any]) -> List[str]:
    """Return the argument --kv-transfer-config."""
    config = {
        "kv_connector": connector,
        "kv_role": "kv_both",
        "kv_load_failure_policy": settings.values["load_failure"],
        "kv_connector_extra_config": {**extra, **(settings.values["extra"] or {})},
    }
    return ["--kv-transfer-config", json.dumps(config, sort_keys=True)]


def _lmcache(settings: Settings, kv_dir: str) -> Dict[str, Any]:
    """LMCache inside the engine's workers. L1 is the pool that every load passes through; it answers requests only where it is kept."""
    l1, l2, values = settings.tier("l1"), settings.tier("l2"), settings.values
    config: Dict[str, Any] = {
        "chunk_size": values["chunk_tokens"],
        "local_cpu": bool(l1["keep"]),
        "max_local_cpu_size": float(l1["gib"]),  # of each worker
        "local_disk": None,
        "save_unfull_chunk": False,
        "pre_caching_hash_algorithm": values["hash"],
        "internal_api_server_enabled": True,
        "internal_api_server_host": "127.0.0.1",
        "internal_api_server_port_start": values["api_port"],
    }
    if settings.storage == "fs":
        config["remote_url"] = f"fs://localhost:0{kv_dir}"
        config["remote_serde"] = "naive"
        # O_DIRECT is dropped with no more than a warning while the 28 bytes of chunk metadata stand before the data.
        config["extra_config"] = {"fs_connector_use_odirect": bool(l2["direct_io"]), "save_chunk_meta": not l2["direct_io"]}
    else:
        config["gds_path"] = kv_dir
        config["gds_buffer_size"] = int(l2["buffer_mib"])
        config["use_gds"] = settings.engine["accelerator"] in ("cuda", "rocm")
        config["gds_backend"] = "hipfile" if settings.engine["accelerator"] == "rocm" else "cufile"
        config["extra_config"] = {"use_direct_io": bool(l2["direct_io"]), "disk_io_threads": int(l2["read_threads"] or 16)}
    return {
        "args": transfer("LMCacheConnectorV1", settings, {}),
        "env": {"LMCACHE_TRACK_USAGE": "false", "PYTHONHASHSEED": str(values["hash_seed"])},
        "files": {LMCACHE_FILE: config},
        "connector": "LMCacheConnectorV1",
        # One server a worker, behind the scheduler's; they count every 10 s (LMCacheStatsLogger), so they must stand still for two of these.
        "metrics_urls": [f"http://127.0.0.1:{int(values['api_port']) + 1 + worker}/metrics" for worker in range(workers(settings))],
        "idle": {
            "families": ["lmcache:num_stored_tokens", *(["lmcache:num_remote_write_bytes"] if settings.storage == "fs" else [])],
            "empty": ["lmcache:remote_put_task_num"],
            "still_s": 25.0,
            "files": True,  # GDS has no counter of what it wrote
        },
    }


def _lmcache_mp(settings: Settings, kv_dir: str) -> Dict[str, Any]:
    """LMCache as a process of its own beside the engine, with the array behind its L2 adapter."""
    l1, l2, values = settings.tier("l1"), settings.tier("l2"), settings.values
    adapter: Dict[str, Any] = {"type": settings.storage, "base_path": kv_dir, "use_odirect": bool(l2["direct_io"])}
    if settings.storage == "fs_native":
        adapter["num_workers"] = int(l2["read_threads"] or 16)
        if l2["gib"]:
            adapter["max_capacity_gb"] = float(l2["gib"])
            adapter["eviction"] = {"eviction_policy": "LRU"}
    port = int(values["server_port"])
    argv = ["lmcache", "server", "--host", "127.0.0.1", "--port", str(port), "--http-host", "127.0.0.1", "--http-port", str(values["http_port"])]
    argv += ["--chunk-size", str(values["chunk_tokens"]), "--l1-size-gb", str(l1["gib"]), "--eviction-policy", "LRU"]
    argv += ["--max-workers", str(int(l2["read_threads"] or 16))]
    argv += ["--l2-store-policy", "default" if l1["keep"] else "skip_l1", "--l2-prefetch-policy", "retain" if l1["keep"] else "default"]
    argv += ["--l2-adapter", json.dumps(adapter, sort_keys=True)]
    env = {"LMCACHE_TRACK_USAGE": "false", "PYTHONHASHSEED": str(values["hash_seed"])}
    return {
        "args": transfer("LMCacheMPConnector", settings, {"lmcache.mp.host": "tcp://127.0.0.1", "lmcache.mp.port": port}),
        "env": {"PYTHONHASHSEED": str(values["hash_seed"])},
        "processes": [{"name": "lmcache-server", "argv": argv, "env": env, "wait": {"tcp": f"127.0.0.1:{port}"}, "timeout_s": 120}],
        "connector": "LMCacheMPConnector",
        "metrics_urls": [f"http://127.0.0.1:{int(values['http_port'])}/metrics"],
        "idle": {
            "families": ["lmcache_mp_l2_store_completed_objects_chunks"],
            "pairs": [["lmcache_mp_l2_store_submitted_requests", "lmcache_mp_l2_store_completed_requests"]],
            "still_s": 5.0,
            "files": True,
        },
    }


def _native(settings: Settings, kv_dir: str) -> Dict[str, Any]:
    """Tiering inside vLLM: host memory first, files behind it. O_DIRECT is probed by vLLM itself, so the file system must offer it."""
    l1, l2, values = settings.tier("l1"), settings.tier("l2"), settings.values
    tier = {
        "type": "fs",
        "root_dir": kv_dir,
        "n_read_threads": int(l2["read_threads"] or 16),
        "n_write_threads": int(l2["write_threads"] or 16),
    }
    extra = {
        "spec_name": "TieringOffloadingSpec",
        "cpu_bytes_to_use": int(float(l1["gib"]) * GIB),
        "block_size": values["chunk_tokens"],
        "eviction_policy": "lru",
        "secondary_tiers": [tier],
    }
    return {
        "args": transfer("OffloadingConnector", settings, extra),
        "env": {"PYTHONHASHSEED": str(values["hash_seed"])},
        "connector": "OffloadingConnector",
        "idle": {"families": ["vllm:kv_offload_tiering_write_bytes"], "still_s": 5.0, "files": True},
    }


def _hicache(settings: Settings, kv_dir: str) -> Dict[str, Any]:
    """SGLang's HiCache: L1 is its host pool, L2 a folder of files or a Mooncake store."""
    l1, values = settings.tier("l1"), settings.values
    idle = {"families": ["sglang:backuped_tokens"], "still_s": 10.0, "files": True}
    args = ["--enable-hierarchical-cache", "--hicache-size", str(int(l1["gib"])), "--hicache-write-policy", "write_through"]
    args += ["--hicache-host-memory-mode", "cache" if l1["keep"] else "buffer_only"]
    args += ["--hicache-io-backend", "kernel_ascend" if settings.engine["accelerator"] == "ascend" else "kernel"]
    args += ["--hicache-mem-layout", "page_first", "--hicache-storage-prefetch-policy", "wait_complete"]
    args += ["--hicache-storage-backend", str(settings.storage)]
    if settings.storage == "file":
        return {"args": args, "env": {"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": kv_dir}, "connector": "HiCacheFile", "idle": idle}
    m = values["mooncake"]
    config = {
        "master_server_address": m["master"],
        "metadata_server": m["metadata"],
        "protocol": m["protocol"],
        "device_name": m["device"],
        "global_segment_size": int(float(m["segment_gib"]) * GIB),
        "enable_ssd_offload": True,
        "ssd_offload_path": kv_dir,
    }
    if m["local_hostname"]:
        config["local_hostname"] = m["local_hostname"]
    processes: List[Dict[str, Any]] = []
    if m["start_master"]:
        host, _, port = str(m["master"]).rpartition(":")
        argv = ["mooncake_master", f"--rpc_address={host}", f"--rpc_port={port}", "--enable_offload=true"]
        processes = [{"name": "mooncake-master", "argv": argv, "env": {}, "wait": {"tcp": m["master"]}, "timeout_s": 60}]
    args += ["--hicache-storage-backend-extra-config", json.dumps(config, sort_keys=True)]
    env = {"MOONCAKE_OFFLOAD_FILE_STORAGE_PATH": kv_dir}
    return {"args": args, "env": env, "processes": processes, "connector": "MooncakeStore", "idle": idle}


def workers(settings: Settings) -> int:
    """Return how many workers the engine has."""
    e = settings.engine
    return int(e.get("tensor_parallel") or 1) * int(e.get("pipeline_parallel") or 1) * int(e.get("data_parallel") or 1)


_RENDER = {"lmcache": _lmcache, "lmcache_mp": _lmcache_mp, "native": _native, "hicache": _hicache}
