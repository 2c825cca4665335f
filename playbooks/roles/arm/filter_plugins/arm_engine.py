"""From the site's description to the engine of one arm: its configuration, how it is started, and what is compared for fairness. Pure.

An engine comes out of here as {base_url, base_urls (where it has several instances), model, files: {path: content}, spec_path, pid_file,
kv_dirs, array_stats, declared, arm,
prefill_token_s, load_token_s, start_timeout_s}. The arm's name ends here: nothing that is put on the target holds it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "offload"))
sys.path.insert(0, str(Path(__file__).resolve().parent))
from arm_faults import ENGINE_FAULTS, faults_of
from engine_stack import cpu
from engine_stack import describe_all as real_engine
from engine_stack.describe import STOP_S, launch

# What belongs to the medium. Every other key of an arm is the engine's software, and shows up as a difference between arms.
MEDIUM = ("mount_path", "device", "transport", "mount_options", "address", "model_dir")
# What the medium of the lab is able to do. On a real site nobody configures this, so it is no difference of configuration.
NATURE = ("read_bytes_per_s", "cache_bytes_per_s")
# Of the lab's physics, what one would find in the configuration of a real engine.
SOFTWARE = ("kv_bytes_per_token", "block_tokens", "hbm_tokens", "max_num_seqs", "max_model_len")

LOOPBACK = "127.0.0.1"
_REAL_ON_A_RACK = ("loop_xfs", "directory")  # what the kit never makes by simulated tools

Facts = Mapping[str, Any]


def arm_engine(site: Mapping[str, Any], arm: str, gate: str, seed: int, attempt: str, host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the engine of an arm on a host ({name, root, python, index, counters, address}). Raises ValueError with a sentence.

    `address` is where an engine listens that is driven from another host; without one it listens on the loopback alone.
    """
    arms = with_baseline_tuned(site.get("arms") or {})
    if arm not in arms:
        raise ValueError(f"The engagement's targets describe no arm {arm} (targets.arms knows: {', '.join(sorted(arms)) or 'none'}).")
    engine = site.get("engine") or {}
    kind = engine.get("kind")
    if kind not in KINDS:
        raise ValueError(f"targets.engine.kind is {kind!r}; this service knows {', '.join(sorted(KINDS))}.")
    if kind in STAND_INS and site.get("simulated") is False:
        raise ValueError(f"targets.engine.kind {kind} stands in for a real engine, and targets.simulated is false: nothing is measured so.")
    keys = dict(arms[arm] or {})
    root = str(host["root"])
    if keys.get("model_dir") and kind in STAND_INS:
        raise ValueError(f"The arm {arm} has a model_dir of its own, and an engine of kind {kind} has one model for all arms. Leave it out.")
    medium = keys.get("mount_path")
    if engine.get("cool") == "reset" and kind == "vllm_cpu":
        raise ValueError("targets.engine.cool is reset, and vLLM of kind vllm_cpu keeps no prefix cache that could be reset. Leave it out.")
    instances = instances_of(engine)
    place = {
        "port": int(engine.get("port", 18461)) + int(host.get("index", 0)) * instances,
        "instances": instances,
        "kv_dir": f"{medium_root(site, str(medium), root)}/{attempt}" if medium else None,
        "array_stats": f"{root}/array/{medium}.json" if medium else None,
        "seed": seed,
        "offload": site.get("offload"),
        "address": str(host.get("address") or LOOPBACK),
    }
    faults = {name: strength for name, strength in faults_of(site.get("faults"), arm, gate).items() if name in ENGINE_FAULTS}
    found = KINDS[kind](engine, keys, place, host, faults)
    return {**found, "media": media_of_arm(site, str(medium), root, found["kv_dirs"]) if medium else []}


def arm_engines(site: Mapping[str, Any], arm: str, gate: str, seed: int, attempt: str, hosts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the engine of an arm on each of these hosts, in their order."""
    return [arm_engine(site, arm, gate, seed, attempt, host) for host in hosts]


def arm_together(engines: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return engines that share one load as one, for its times: the first, at the rates of all."""
    first, count = engines[0], len(engines)
    load = first["load_token_s"]
    return {**first, "prefill_token_s": first["prefill_token_s"] / count, "load_token_s": load if load is None else load / count}


def instances_of(engine: Mapping[str, Any]) -> int:
    """Return how many instances of the model serve together (targets.engine.instances, by default 1). Raises ValueError with a sentence."""
    given = engine.get("instances", 1)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f"targets.engine.instances is {given!r}; it is a whole number from 1.")
    if given > 1 and engine.get("kind") == "vllm_cpu":
        raise ValueError(f"targets.engine.instances is {given}, and vLLM on the CPU takes all of its cores already. Leave it out.")
    if given > 1 and engine.get("cool") == "reset":
        raise ValueError(
            f"targets.engine.cool is reset, and of {given} instances one would be reset. Leave it out: they are restarted before each run."
        )
    return given


def with_baseline_tuned(arms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arms with `baseline_tuned`: the baseline's medium with the candidate's software settings, which tells the array from a flag.

    It follows from the other two, so it need not be described; one that is described otherwise raises ValueError with a sentence.
    """
    if "baseline" not in arms or "candidate" not in arms:
        return dict(arms)
    baseline, candidate = arms["baseline"] or {}, arms["candidate"] or {}
    tuned = {k: v for k, v in baseline.items() if k in MEDIUM + NATURE}
    tuned.update({k: v for k, v in candidate.items() if k not in MEDIUM + NATURE})
    if arms.get("baseline_tuned") not in (None, tuned):
        raise ValueError(f"targets.arms.baseline_tuned must be the medium of baseline with the software of candidate, {tuned}, or be left out.")
    return {**arms, "baseline_tuned": tuned}


def medium_root(site: Mapping[str, Any], medium: str, root: str) -> str:
    """Return the folder for KV on a medium: below the mount point that the role `volume` made, or below our own root where nothing is mounted."""
    described = (site.get("volume") or {}).get(medium)
    return f"{described['mount']}/kv".replace("{root}", root) if described else f"{root}/kv/{medium}"


def media_of_arm(site: Mapping[str, Any], medium: str, root: str, kv_dirs: list[str]) -> list[dict[str, Any]] | None:
    """Return where each KV directory of an arm must lie, {dir, mount_point, fs_types, sources}; None where nothing describes the medium.

    Of a plain folder its own keys `mount_point`, `fs_type` and `source` say it, if they are given. What a simulated rack mounts is on no list of
    the kernel's: the rack's own `findmnt` is named, which tells it. Raises ValueError where a site that is not simulated describes no such medium.
    """
    described = (site.get("volume") or {}).get(medium)
    if not described and site.get("simulated") is False:
        raise ValueError(
            f"An arm has the mount_path {medium}, and targets.volume describes no medium of that name: its KV would lie below {root}, wherever that "
            "is. Describe it there (kind: directory, and its folder, where the site mounts it)."
        )
    if not described:
        return None
    kinds = {"nfs": ["nfs", "nfs4"], "directory": [described["fs_type"]] if described.get("fs_type") else []}.get(described["kind"], ["xfs"])
    source = described.get({"loop_xfs": "image", "nfs": "source", "directory": "source"}.get(described["kind"], "device"))
    sources = [source or f"/dev/md/qg-{medium}"] if source or described["kind"] == "md_xfs" else []
    point = described.get("mount_point") if described["kind"] == "directory" else described["mount"]
    filled = [None if text is None else str(text).replace("{root}", root) for text in (point, *sources)]
    row = {"mount_point": filled[0], "fs_types": kinds, "sources": filled[1:]}
    if site.get("rack") and described["kind"] not in _REAL_ON_A_RACK:
        row["findmnt"] = f"{root}/rack/bin/findmnt"
    return [{"dir": kv_dir, **row} for kv_dir in kv_dirs]


def array_stats(engine: Mapping[str, Any], medium: str) -> str | None:
    """Return the file or address with the statistics of the array behind a medium (targets.engine.array_stats: {MOUNT_PATH: where}), or None.

    They are the array's: another medium, such as an NFS server, has its own or none.
    """
    given = engine.get("array_stats") or {}
    if not isinstance(given, Mapping):
        raise ValueError(f"targets.engine.array_stats is {given!r}; give it as {{MOUNT_PATH: file or http address}}.")  # noqa: TRY004 - a sentence
    return str(given[medium]) if medium in given else None


def _lab(
    engine: Mapping[str, Any], keys: dict[str, Any], place: Mapping[str, Any], host: Mapping[str, Any], faults: Mapping[str, float]
) -> dict[str, Any]:
    physics = {**(engine.get("physics") or {}), **{k: v for k, v in keys.items() if k not in MEDIUM and k not in NATURE}}
    model, root = str(engine.get("model", "lab")), str(host["root"])
    config: dict[str, Any] = {"model": model, "port": place["port"], "seed": place["seed"], **physics}
    like_sglang = engine.get("dialect") == "sglang"
    if like_sglang:
        config["dialect"] = "sglang"
    if place["address"] != LOOPBACK:
        config["host"] = place["address"]
    for name, strength in faults.items():
        for key, amount in ENGINE_FAULTS[name](strength).items():
            config.setdefault("faults", {})[key] = amount
    if place["kv_dir"]:
        share = config.get("faults", {}).pop("cache_share", 0.0)
        array = {"cache_share": share, "stats_path": place["array_stats"], "counters": list(host.get("counters") or [])}
        array.update({k: keys[k] for k in ("cache_bytes_per_s",) if k in keys})
        config["tier"] = {"path": place["kv_dir"], "read_bytes_per_s": keys.get("read_bytes_per_s", 0), "array": array}
    count = int(place["instances"])
    if count > 1 and "tier" in config:
        config["tier"]["read_bytes_per_s"] /= count  # they share one medium
    config["state_path"] = f"{root}/engine/state-{_digest(config)}"
    folder = f"{root}/engine/{_digest([config, count] if count > 1 else config)}"
    configs = {f"config{f'-{n}' if n else ''}.json": {**config, "port": place["port"] + n} for n in range(count)}
    argvs = [[host["python"], "-I", f"{root}/engine/lab_engine.pyz", "--config", f"{folder}/{name}"] for name in configs]
    started = launch([{"name": f"engine-{n}", "argv": argv, "env": {}} for n, argv in enumerate(argvs)], folder, host)
    described = {
        "model": model,
        "kv_dirs": [place["kv_dir"]] if place["kv_dir"] else [],
        "array_stats": place["array_stats"],
        # vLLM's dialect tells them at /config; SGLang has no such page.
        "declared": {"kv_bytes_per_token": int(config.get("kv_bytes_per_token", 16))} if like_sglang else {},
        "reset": "/flush_cache" if like_sglang else "/reset_prefix_cache",
        "kv_token_bytes": int(config.get("kv_bytes_per_token", 16)),
        "arm": _flat(keys, {"model": model, **{k: config[k] for k in SOFTWARE if k in config}, **({"kv_tier": "files"} if place["kv_dir"] else {})}),
        "prefill_token_s": 1.0 / float(config.get("prefill_tokens_per_s", 1e6)) / count,
        "load_token_s": float(config.get("kv_bytes_per_token", 16)) / float(keys["read_bytes_per_s"]) if keys.get("read_bytes_per_s") else None,
    }
    files = {**configs, **started["files"]}
    return {**described, **_process(started["argv"], started["env"], folder, root, _urls(place), files, int(engine.get("start_timeout_s", 60)))}


def _vllm(
    engine: Mapping[str, Any], keys: dict[str, Any], place: Mapping[str, Any], host: Mapping[str, Any], faults: Mapping[str, float]
) -> dict[str, Any]:
    """Describe vLLM on the CPU. It takes no fault: nothing in it can be told to misbehave."""
    if faults:
        raise ValueError(f"vLLM takes no faults, and {', '.join(sorted(faults))} is asked for. Use the simulated engine.")
    root = str(host["root"])
    found = cpu.describe(engine, {k: v for k, v in keys.items() if k not in MEDIUM + NATURE}, {**place, "root": root})
    argv, env, software, model = found["argv"], found["env"], found["software"], str(engine["model"])
    described = {
        "model": model,
        "model_dir": str(engine["model_dir"]),
        "kv_dirs": [place["kv_dir"]] if place["kv_dir"] else [],
        "array_stats": None,
        "kv_token_bytes": int(engine.get("kv_bytes_per_token") or 16384),
        "declared": {"kv_bytes_per_token": engine.get("kv_bytes_per_token"), "block_tokens": software["block_size"]},
        "arm": _flat(keys, {"model": model, **software}),
        "prefill_token_s": float(engine.get("prefill_token_s", 0.0006)),
        "load_token_s": float(engine.get("load_token_s", 0.00002)) if place["kv_dir"] else None,
    }
    folder = f"{root}/engine/{_digest([argv, env])}"
    return {**described, **_process(argv, env, folder, root, _urls(place), {}, int(engine.get("start_timeout_s", 300)))}


def _real(
    engine: Mapping[str, Any], keys: dict[str, Any], place: Mapping[str, Any], host: Mapping[str, Any], faults: Mapping[str, float]
) -> dict[str, Any]:
    """Describe vLLM or SGLang on real hardware, with the offload software of targets.offload. It takes no fault."""
    if faults:
        raise ValueError(f"A real engine takes no faults, and {', '.join(sorted(faults))} is asked for. Use the simulated engine.")
    root = str(host["root"])
    if place["address"] != LOOPBACK:
        engine = {"listen": place["address"], **engine}
    engine = {**engine, **({"model_dir": keys["model_dir"]} if keys.get("model_dir") else {})}  # the same model, on this arm's medium
    folder = f"{root}/engine/{_digest([dict(engine), place['offload'], keys, place['kv_dir'], place['port']])}"
    count = int(place["instances"])
    found = real_engine(engine, place["offload"], keys, {**place, "folder": folder})
    stop_s = int(engine.get("stop_timeout_s", STOP_S))
    started = launch(found["processes"], folder, host, str(engine.get("supervision") or "process"), stop_s)
    described = {
        "model": str(engine["model"]),
        "model_dir": str(engine["model_dir"]),
        "kv_dirs": found["kv_dirs"],
        "array_stats": array_stats(engine, str(keys["mount_path"])) if keys.get("mount_path") else None,
        "kv_token_bytes": int(
            engine.get("kv_bytes_per_token") or 262144
        ),  # the largest of the common models, so that room is never guessed too small
        "declared": {"kv_bytes_per_token": engine.get("kv_bytes_per_token"), "block_tokens": engine.get("block_tokens")},
        "reset": _reset_path(str(engine["kind"]), bool(found["kv_dirs"])),
        "arm": _flat({k: v for k, v in keys.items() if k in MEDIUM}, found["software"]),
        "prefill_token_s": float(engine.get("prefill_token_s", 0.00005)) / count,
        "load_token_s": float(engine.get("load_token_s", 0.00002)) / count if found["kv_dirs"] else None,
    }
    files = {**found["files"], **started["files"]}
    described.update(group=started["group"], metrics_urls=found["metrics_urls"], idle=found["idle"], caches=found["caches"])
    stops = {"stop_argv": started["stop_argv"], "stop_timeout_s": stop_s}
    limit = int(engine.get("start_timeout_s", 3600))
    return {**described, **_process(started["argv"], started["env"], folder, root, _urls(place), files, limit, stops)}


def _reset_path(kind: str, with_tier: bool) -> str:
    """Return what is posted to so that the engine forgets what it holds itself, and keeps what lies on files.

    SGLang's flush takes its host memory along. Of vLLM the connector's cache in host memory goes too; without a connector it refuses that word.
    """
    if kind == "sglang":
        return "/flush_cache"
    return "/reset_prefix_cache" + ("?reset_external=true" if with_tier else "")


def _urls(place: Mapping[str, Any]) -> list[str]:
    """Return where each instance answers."""
    address = f"[{place['address']}]" if ":" in place["address"] else place["address"]
    return [f"http://{address}:{int(place['port']) + n}" for n in range(int(place["instances"]))]


def _process(
    argv: list[str],
    env: dict[str, str],
    folder: str,
    root: str,
    urls: list[str],
    files: Mapping[str, Any],
    timeout_s: int,
    stops: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return how the probe starts and stops the process, and the files for it. The folder's name is the digest of what runs.

    `urls`: one of each instance; with several the process is the launcher, which ends all of them when one ends.
    `stops`: the commands that end what is no child of it, and how long an engine may take to end (in s).
    """
    pid_file = f"{root}/engine/engine.pid"
    spec = {
        "name": "engine",
        "argv": argv,
        "env": env,
        "cwd": f"{root}/engine",
        "log": f"{root}/engine/engine.log",
        "pid_file": pid_file,
        "health_url": f"{urls[0]}/health",
        **({"more_health_urls": [f"{url}/health" for url in urls[1:]]} if len(urls) > 1 else {}),
        "timeout_s": timeout_s,
        **(stops or {}),
    }
    contents = {f"{folder}/{name}": content for name, content in {**files, "spec.json": spec}.items()}
    return {
        "base_url": urls[0],
        **({"base_urls": urls} if len(urls) > 1 else {}),
        "pid_file": pid_file,
        "spec_path": f"{folder}/spec.json",
        "folder": folder,
        "files": contents,
        "start_timeout_s": timeout_s,
        "stop_timeout_s": int((stops or {}).get("stop_timeout_s") or 10),
    }


def _flat(keys: Mapping[str, Any], software: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration as flat keys: those of the medium by their own names, those of the software below `engine.`."""
    other = {k: v for k, v in keys.items() if k not in MEDIUM and k not in NATURE}
    flat = {f"engine.{key}": value for key, value in {**software, **other}.items()}
    return {**flat, **{key: keys[key] for key in MEDIUM if key in keys}}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


STAND_INS = ("lab", "vllm_cpu")
KINDS: dict[str, Callable[..., dict[str, Any]]] = {"lab": _lab, "vllm_cpu": _vllm, "vllm": _real, "sglang": _real}


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"arm_engines": arm_engines, "arm_together": arm_together}
