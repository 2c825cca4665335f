"""vLLM on the CPU with a small model, the stand-in that is a real engine: its command line, its environment, and what is compared for fairness."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping

NEEDS = ("venv", "model_dir", "model", "port")
CONNECTOR, MODULE = "SeededExampleConnector", "seeded_connector"  # roles/engine_vllm/files: it lies beside the engine's log
HASH_SEED = "0"  # PYTHONHASHSEED, the root of every key: KV that was stored under another one is never found


def describe(engine: Mapping[str, Any], software: Mapping[str, Any], place: Mapping[str, Any]) -> Dict[str, Any]:
    """Return {argv, env, software} of an arm. `software`: the arm's own settings; `place` has kv_dir (or None), port and root.

    Raises ValueError with a sentence that names what targets.engine lacks.
    """
    if lacking := [key for key in NEEDS if not engine.get(key)]:
        raise ValueError(f"targets.engine of kind vllm_cpu lacks {', '.join(lacking)}.")
    settings = {
        "max_num_batched_tokens": int(engine.get("max_num_batched_tokens", 65536)),
        "max_model_len": int(engine.get("max_model_len", 4096)),
        "block_size": int(engine.get("block_tokens", 32)),
        "kvcache_space_gib": int(engine.get("kvcache_space_gib", 1)),
        **software,
    }
    argv = [f"{engine['venv']}/bin/python", "-m", "vllm.entrypoints.openai.api_server"]
    argv += ["--model", str(engine["model_dir"]), "--served-model-name", str(engine["model"])]
    argv += ["--host", str(place.get("address") or "127.0.0.1"), "--port", str(place["port"])]
    argv += ["--enforce-eager", "--no-enable-prefix-caching", "--no-enable-chunked-prefill"]
    argv += ["--block-size", str(settings["block_size"]), "--max-model-len", str(settings["max_model_len"])]
    argv += ["--max-num-batched-tokens", str(settings["max_num_batched_tokens"]), "--enable-prompt-tokens-details", "--seed", "0"]
    argv.append("--disable-uvicorn-access-log")
    env = {
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": str(settings["kvcache_space_gib"]),
        # vLLM keeps one processor free for itself, but none where a KV connector is set: left to itself, the arms would compute on
        # different numbers of processors.
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONHASHSEED": HASH_SEED,
    }
    if place["kv_dir"]:
        transfer = {
            "kv_connector": CONNECTOR,
            "kv_connector_module_path": MODULE,
            "kv_role": "kv_both",
            "kv_connector_extra_config": {"shared_storage_path": place["kv_dir"]},
        }
        argv += ["--kv-transfer-config", json.dumps(transfer, sort_keys=True)]
        env["PYTHONPATH"] = f"{place['root']}/engine"
        settings["kv_tier"] = CONNECTOR
    return {"argv": argv, "env": env, "software": settings}
