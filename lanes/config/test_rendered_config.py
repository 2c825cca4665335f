"""What the roles render is accepted by the parsers of the pinned vLLM, LMCache and SGLang releases, and a key that no release knows is found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "playbooks" / "roles" / "offload"))
from engine_stack import RELEASES, describe, describe_all  # noqa: E402

PARSERS = ROOT / "var" / "parsers"
ENGINE = {
    "accelerator": "rocm",
    "model": "qwen3-coder-480b",
    "model_dir": "/models/qwen3-coder-480b",
    "port": 18400,
    "venv": "/opt/quadgate/venv",
    "tensor_parallel": 8,
    "expert_parallel": True,
    "data_parallel": 1,
    "max_model_len": 40960,
    "max_num_seqs": 64,
    "max_num_batched_tokens": 8192,
    "block_tokens": 64,
    "kv_cache_dtype": "auto",
    "dtype": "bfloat16",
}
RESET = ("native",)  # cooled by the developers' endpoint, which is open only then
ACCELERATORS, BY_ACCELERATOR = ("cuda", "ascend", "cpu"), ("lmcache-gds", "hicache-file")
SPREAD = ("lmcache-gds", "lmcache-mp-native", "native", "hicache-file")  # over stages and instances
MOONCAKE = {"master": "127.0.0.1:50051", "segment_gib": 4, "local_hostname": "gpu01"}
OFFLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "lmcache-fs": ("vllm", {"kind": "lmcache", "storage": "fs"}),
    "lmcache-fs-kept": ("vllm", {"kind": "lmcache", "l1": {"keep": True}, "l2": {"direct_io": False}}),
    "lmcache-gds": ("vllm", {"kind": "lmcache", "storage": "gds", "l2": {"read_threads": 32}}),
    "lmcache-mp-native": ("vllm", {"kind": "lmcache_mp", "l2": {"read_threads": 32, "gib": 4000}}),
    "lmcache-mp-fs": ("vllm", {"kind": "lmcache_mp", "storage": "fs"}),
    "native": ("vllm", {"kind": "native", "l1": {"keep": True}, "l2": {"read_threads": 32, "write_threads": 16}}),
    "hicache-file": ("sglang", {"kind": "hicache"}),
    "hicache-mooncake": ("sglang", {"kind": "hicache", "storage": "mooncake", "mooncake": MOONCAKE}),
}


MISSPELT = [
    ("lmcache-fs", "--tensor-parallel-size --tensor-parallel-sizes"),
    ("lmcache-fs", "LMCacheConnectorV1 LMCacheConnectorV9"),
    ("lmcache-fs", "max_local_cpu_size max_local_cpu_sizes"),
    ("lmcache-fs", "fs_connector_use_odirect fs_connector_odirect"),
    ("native", "VLLM_SERVER_DEV_MODE VLLM_DEV_MODE"),
    ("lmcache-mp-native", "num_workers workers"),
    ("lmcache-mp-native", "--l1-size-gb --l1-gb"),
    ("lmcache-mp-native", "lmcache.mp.port lmcache.port"),
    ("native", "n_read_threads read_threads"),
    ("native", "cpu_bytes_to_use cpu_bytes"),
    ("native", "cpu_bytes_to_use OffloadKey"),  # stands in vLLM's sources, and is no key that is looked up
    ("lmcache-fs", "fs_connector_use_odirect BATCHED_REMOVE"),  # in LMCache's
    ("lmcache-gds instances", "save_unfull_chunk save_unfull_chunks"),  # in the files of each instance
    ("native", "TieringOffloadingSpec TieringSpec"),
    ("hicache-file", "--hicache-mem-layout --hicache-layout"),
    ("hicache-file", "SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR SGLANG_HICACHE_DIR"),
    ("hicache-mooncake", "ssd_offload_path ssd_path"),
    ("hicache-mooncake", "--rpc_port --rpc_por"),
]
PLACE = {"folder": "/var/tmp/quadgate/engine/x", "port": 18400}


def rendered(name: str, **engine: Any) -> dict[str, Any]:
    kind, offload = OFFLOADS[name]
    keys = {"mount_path": "array", "transport": "rdma"}
    cool = {"cool": "reset"} if name in RESET else {}
    return describe({**ENGINE, "kind": kind, **cool, **engine}, offload, keys, {**PLACE, "kv_dir": "/mnt/quadgate/array/kv/a1"})


def instances(name: str) -> dict[str, Any]:
    """Return TP4 x 2 on one host: each instance with ports, accelerators and files of its own."""
    kind, offload = OFFLOADS[name]
    engine = {**ENGINE, "kind": kind, "tensor_parallel": 4}
    return describe_all(engine, offload, {"mount_path": "array"}, {**PLACE, "instances": 2, "kv_dir": "/mnt/quadgate/array/kv/a1"})


def without_external_kv(kind: str) -> dict[str, Any]:
    return describe({**ENGINE, "kind": kind}, None, {}, {**PLACE, "kv_dir": None})


def misspelt(name: str, change: str) -> dict[str, Any]:
    old, new = change.split(" ")
    plain = name.partition(" ")[0]
    sound = json.dumps(rendered(name) if plain == name else instances(plain))
    assert old in sound
    broken: dict[str, Any] = json.loads(sound.replace(old, new))
    return broken


@pytest.fixture(scope="module")
def problems() -> dict[str, list[str]]:
    """Fetch the releases once and ask their parsers about everything below, in one process, since importing them is what takes time."""
    subprocess.run([str(ROOT / "tools" / "parsers.sh")], check=True, timeout=1200)
    asked = {name: rendered(name) for name in OFFLOADS}
    asked.update({f"{name} {accelerator}": rendered(name, accelerator=accelerator) for name in BY_ACCELERATOR for accelerator in ACCELERATORS})
    asked.update({f"{name} pipeline": rendered(name, tensor_parallel=4, pipeline_parallel=2) for name in SPREAD})
    asked.update({f"{name} instances": instances(name) for name in SPREAD})
    asked["native afar"] = rendered("native", listen="10.0.0.11")
    asked.update({kind: without_external_kv(kind) for kind in ("vllm", "sglang")})
    asked.update({f"{name} {change}": misspelt(name, change) for name, change in MISSPELT})
    argv = [str(PARSERS / "venv/bin/python"), str(ROOT / "lanes/config/parse.py"), str(PARSERS / "src")]
    done = subprocess.run(argv, input=json.dumps(asked), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[str]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


@pytest.mark.parametrize("name", OFFLOADS)
def test_the_parsers_of_the_pinned_releases_take_every_flag_and_key(name: str, problems: dict[str, list[str]]) -> None:
    assert problems[name] == []


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", BY_ACCELERATOR)
def test_they_take_it_for_every_accelerator(name: str, accelerator: str, problems: dict[str, list[str]]) -> None:
    assert problems[f"{name} {accelerator}"] == []


@pytest.mark.parametrize("way", ["pipeline", "instances"])
@pytest.mark.parametrize("name", SPREAD)
def test_they_take_it_in_pipeline_stages_and_in_several_instances(name: str, way: str, problems: dict[str, list[str]]) -> None:
    assert problems[f"{name} {way}"] == []


def test_they_take_the_doors_of_an_engine_that_is_reset_and_that_a_load_generator_reaches(problems: dict[str, list[str]]) -> None:
    assert "--middleware" in rendered("native", listen="10.0.0.11")["processes"][-1]["argv"]
    assert problems["native afar"] == []


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_they_take_the_engine_without_external_kv(kind: str, problems: dict[str, list[str]]) -> None:
    assert without_external_kv(kind)["kv_dirs"] == []
    assert problems[kind] == []


@pytest.mark.parametrize(("name", "change"), MISSPELT)
def test_a_name_that_the_release_does_not_know_is_found(name: str, change: str, problems: dict[str, list[str]]) -> None:
    assert problems[f"{name} {change}"]


def test_the_roles_name_the_releases_that_were_asked() -> None:
    lines = (ROOT / "lanes/config/releases.txt").read_text(encoding="utf-8").splitlines()
    assert {tuple(line.split(" ")[0].split("==")) for line in lines if "==" in line} == set(RELEASES.items())
