"""The engine's own command line: vLLM and SGLang, on ROCm, CUDA, Ascend and CPU."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any, Dict, List

from engine_stack.settings import Settings

DOORS = "quadgate_doors"  # our module inside vLLM's server, which keeps its developers' endpoints from other hosts

# What each accelerator adds. Ascend comes as a plug-in of its own (vllm-ascend), found by its entry point.
ACCELERATOR_ENV: Dict[str, Dict[str, str]] = {
    "rocm": {"VLLM_ROCM_USE_AITER": "1"},
    "cuda": {},
    "ascend": {"VLLM_PLUGINS": "ascend"},
    "cpu": {"VLLM_TARGET_DEVICE": "cpu"},
}


def vllm(settings: Settings, folder: str) -> Dict[str, Any]:
    """Return {argv, env, files, health_path} of vLLM's OpenAI server, without interpreter and without offload. `folder`: where its files will lie."""
    e, l0 = settings.engine, settings.tier("l0")
    argv = ["-m", "vllm.entrypoints.openai.api_server", "--model", str(e["model_dir"]), "--served-model-name", str(e["model"])]
    argv += [
        "--host",
        str(e.get("listen") or "127.0.0.1"),
        "--port",
        str(e["port"]),
        "--seed",
        "0",
        "--disable-uvicorn-access-log",  # 72 h of one line a request
        "--enable-prompt-tokens-details",
        "--enable-per-request-metrics",
    ]
    argv += ["--tensor-parallel-size", str(int(e.get("tensor_parallel") or 1)), "--pipeline-parallel-size", str(int(e.get("pipeline_parallel") or 1))]
    if e.get("data_parallel"):
        argv += ["--data-parallel-size", str(int(e["data_parallel"]))]
    if e.get("expert_parallel"):
        argv.append("--enable-expert-parallel")
    argv += ["--gpu-memory-utilization", str(l0["memory_fraction"])]
    argv += ["--enable-prefix-caching" if l0["prefix_caching"] else "--no-enable-prefix-caching"]
    argv += ["--prefix-caching-hash-algo", str(settings.values["hash"])]
    if l0["blocks"]:
        argv += ["--num-gpu-blocks-override", str(int(l0["blocks"]))]
    argv += _sizes(
        e,
        {
            "max_model_len": "--max-model-len",
            "max_num_seqs": "--max-num-seqs",
            "max_num_batched_tokens": "--max-num-batched-tokens",
            "block_tokens": "--block-size",
            "kv_cache_dtype": "--kv-cache-dtype",
            "dtype": "--dtype",
            "quantization": "--quantization",
        },
    )
    env = {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", **ACCELERATOR_ENV[str(e["accelerator"])]}
    files: Dict[str, Any] = {}
    if e.get("cool") == "reset":  # opens the developers' endpoints, the reset among them
        env["VLLM_SERVER_DEV_MODE"] = "1"
        if not _is_loopback(str(e.get("listen") or "127.0.0.1")):
            argv += ["--middleware", f"{DOORS}.Doors"]
            env["PYTHONPATH"] = f"{folder}/doors"
            files[f"doors/{DOORS}.py"] = (Path(__file__).resolve().parents[1] / "files" / f"{DOORS}.py").read_text(encoding="utf-8")
    if e["accelerator"] == "cpu":
        env["VLLM_CPU_KVCACHE_SPACE"] = str(int(e.get("kvcache_space_gib") or 4))
        env["VLLM_CPU_NUM_OF_RESERVED_CPU"] = "1"  # as many processors with a KV connector as without: vLLM's own choice differs
    return {"argv": argv, "env": env, "files": files, "health_path": "/health"}


def _is_loopback(address: str) -> bool:
    """Tell whether nobody but the host itself reaches a server that listens there."""
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False  # a name may lead anywhere


def sglang(settings: Settings, _: str) -> Dict[str, Any]:
    """Return {argv, env, files, health_path} of SGLang's server, without interpreter and without offload. Its flush is open whoever asks."""
    e, l0 = settings.engine, settings.tier("l0")
    argv = ["-m", "sglang.launch_server", "--model-path", str(e["model_dir"]), "--served-model-name", str(e["model"])]
    argv += [
        "--host",
        str(e.get("listen") or "127.0.0.1"),
        "--port",
        str(e["port"]),
        "--random-seed",
        "0",
        "--log-level-http",
        "warning",  # no line a request, for 72 h
        "--enable-metrics",
        "--enable-cache-report",
    ]
    argv += ["--tp-size", str(int(e.get("tensor_parallel") or 1)), "--pp-size", str(int(e.get("pipeline_parallel") or 1))]
    if e.get("expert_parallel"):
        argv += ["--ep-size", str(int(e.get("tensor_parallel") or 1))]
    if e.get("data_parallel"):
        argv += ["--dp-size", str(int(e["data_parallel"]))]
    argv += ["--mem-fraction-static", str(l0["memory_fraction"])]
    if not l0["prefix_caching"]:
        argv.append("--disable-radix-cache")
    if l0["blocks"]:
        argv += ["--max-total-tokens", str(int(l0["blocks"]) * int(e.get("block_tokens") or 64))]
    argv += ["--page-size", str(int(e.get("block_tokens") or 64))]
    argv += ["--device", {"rocm": "cuda", "cuda": "cuda", "ascend": "npu", "cpu": "cpu"}[str(e["accelerator"])]]
    argv += _sizes(
        e,
        {
            "max_model_len": "--context-length",
            "max_num_seqs": "--max-running-requests",
            "max_num_batched_tokens": "--chunked-prefill-size",
            "kv_cache_dtype": "--kv-cache-dtype",
            "dtype": "--dtype",
            "quantization": "--quantization",
        },
    )
    # A look at /health would otherwise run a prompt of one token, which its scheduler counts.
    env = {"HF_HUB_OFFLINE": "1", "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "false"}
    return {"argv": argv, "env": env, "files": {}, "health_path": "/health"}


def _sizes(engine: Any, flags: Dict[str, str]) -> List[str]:
    """Return the flags of those keys that the engagement states."""
    argv: List[str] = []
    for key, flag in flags.items():
        if engine.get(key) is not None:
            argv += [flag, str(engine[key])]
    return argv


ENGINES = {"vllm": vllm, "sglang": sglang}
