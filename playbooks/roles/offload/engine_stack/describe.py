"""One arm's engine, whole: what is started, in a virtual environment or a container, with which files."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from engine_stack import offload as offloads
from engine_stack.engines import ENGINES
from engine_stack.settings import Settings, settings_of

DEVICES: Dict[str, List[str]] = {
    "rocm": ["--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video", "--security-opt", "seccomp=unconfined"],
    "cuda": ["--gpus", "all"],
    "ascend": ["--device", "/dev/davinci_manager", "--device", "/dev/devmm_svm", "--device", "/dev/hisi_hdc"],
    "cpu": [],
}
CONTAINER = "quadgate-engine"
UNIT = "quadgate-engine.service"
STOP_S = 120  # until an engine that is asked to end is killed: it gives back accelerators and pinned memory, as TimeoutStopSec of the unit allows


def describe(engine: Mapping[str, Any], offload: Optional[Mapping[str, Any]], keys: Mapping[str, Any], place: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the engine of an arm. `place` has kv_dir (or None), folder and port. Raises ValueError with a sentence."""
    engine = {**engine, "port": place.get("port") or engine.get("port")}
    settings = settings_of(engine, offload, keys)
    kv_dir, folder = str(place.get("kv_dir") or ""), str(place["folder"])
    own = ENGINES[str(engine["kind"])](settings, folder)
    tier = offloads.render(settings, kv_dir, folder)
    argv = [*own["argv"], *tier["args"], *[str(word) for word in engine.get("args") or []]]
    env = {**own["env"], **tier["env"], **{str(k): str(v) for k, v in (engine.get("env") or {}).items()}}
    if own["files"] and env["PYTHONPATH"] != own["env"]["PYTHONPATH"]:  # the site's own path beside ours
        env["PYTHONPATH"] = f"{own['env']['PYTHONPATH']}:{env['PYTHONPATH']}"
    main = {"name": f"engine-{engine['instance']}" if engine.get("instance") else "engine", "argv": ["python", *argv], "env": env}
    processes = [*tier["processes"], main]
    if (engine.get("install") or "venv") == "container":
        processes = [_contained(engine, p, kv_dir, folder) for p in processes]
    else:
        processes = [_in_venv(engine, p) for p in processes]
    return {
        "processes": processes,
        "files": {**own["files"], **tier["files"]},
        "kv_dirs": [kv_dir] if settings.kind else [],
        "connector": tier["connector"],
        "metrics_urls": tier["metrics_urls"],
        "idle": tier["idle"],
        "caches": _caches(settings),
        "health_path": own["health_path"],
        "software": _software(settings, tier["connector"]),
    }


def _caches(settings: Settings) -> Dict[str, Any]:
    """Return what may answer above the external tier: {l0, l1_bytes}. LMCache's L1 is of each worker, that of the others of the whole engine."""
    l1 = settings.tier("l1")
    many = offloads.workers(settings) if settings.kind == "lmcache" else 1
    kept = int(float(l1["gib"]) * offloads.GIB) * many if settings.kind and l1["keep"] else 0
    return {"l0": bool(settings.tier("l0")["prefix_caching"]), "l1_bytes": kept}


def launch(
    processes: List[Dict[str, Any]], folder: str, host: Mapping[str, Any], supervision: str = "process", stop_s: int = STOP_S
) -> Dict[str, Any]:
    """Return {argv, env, files, group, stop_argv}: the engine alone as it is; several processes, or a unit, by the launcher, which ends all.

    `group` tells whose the engine's processes are where they are not below the one that is started, `stop_argv` the commands that end them.
    """
    owned = _owned(processes, supervision, stop_s)
    if len(processes) == 1 and supervision == "process":
        return {"argv": processes[0]["argv"], "env": processes[0]["env"], "files": {}, **owned}
    argv = [host["python"], "-I", f"{host['root']}/engine/launch.py", f"{folder}/processes.json"]
    argv += ["--unit", UNIT] if supervision == "unit" else []
    return {"argv": argv, "env": {}, "files": {"processes.json": {"processes": processes}}, **owned}


def _owned(processes: List[Dict[str, Any]], supervision: str, stop_s: int) -> Dict[str, Any]:
    """Return {group, stop_argv} of containers, of a unit, or of both: the containers that a unit starts are not in its control group.

    The runtime kills an engine that has not ended by then; the probe waits a little longer than that.
    """
    stops = [["systemctl", "stop", UNIT]] if supervision == "unit" else []
    group: Optional[Dict[str, Any]] = {"kind": "unit", "name": UNIT} if supervision == "unit" else None
    contained = [process["container"] for process in processes if process.get("container")]
    if contained:
        runtime, names = contained[0]["runtime"], [one["name"] for one in reversed(contained)]  # the engine first
        group = {"kind": "container", "runtime": runtime, "names": names}
        stops += [[runtime, "stop", "-t", str(max(1, stop_s - 10)), name] for name in names]
        stops += [[runtime, "rm", "--force", name] for name in names]
    return {"group": group, "stop_argv": stops}


def _in_venv(engine: Mapping[str, Any], process: Mapping[str, Any]) -> Dict[str, Any]:
    """Let the program be the one of the virtual environment, which also stands first on PATH."""
    if not engine.get("venv"):
        raise ValueError("targets.engine.venv is missing; give the folder of the virtual environment, or install: container with an image.")
    folder = f"{engine['venv']}/bin"
    path = f"{folder}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**process, "argv": [f"{folder}/{process['argv'][0]}", *process["argv"][1:]], "env": {"PATH": path, **process["env"]}}


def image_of(engine: Mapping[str, Any]) -> str:
    """Return the name by which an image is checked and run: its id where it is carried in, its registry's digest where it is pulled.

    Raises ValueError with a sentence. The id is the digest of the image's configuration, the same on every machine; `save` and `load` lose the other.
    """
    image, known = str(engine.get("image") or ""), str(engine.get("image_id") or "")
    if engine.get("image_archive") or engine.get("archive"):
        if not re.fullmatch(r"sha256:[0-9a-f]{64}", known):
            raise ValueError(
                f"targets.engine.image_id is {known!r}; an image that is carried in (image_archive) loses its registry's digest. Give its id, "
                "sha256:..., as `docker image inspect --format {{.Id}} NAME` prints it where the archive is saved."
            )
        return known
    if not re.search(r"@sha256:[0-9a-f]{64}$", image):
        raise ValueError(f"targets.engine.image is {image!r}; name it with its digest (NAME@sha256:...), so that every run has the same software.")
    return image


def _contained(engine: Mapping[str, Any], process: Mapping[str, Any], kv_dir: str, folder: str) -> Dict[str, Any]:
    """Run the program in a container in the foreground: the runtime hands signals on, so stopping it stops what is inside."""
    image = image_of(engine)
    name = CONTAINER if process["name"] == "engine" else f"quadgate-{process['name']}"
    argv = [str(engine.get("runtime") or "docker"), "run", "--rm", "--name", name, "--pull", "never", "--network", "host", "--ipc", "host"]
    argv += ["--log-driver", "none"]  # what it says comes to us; the runtime would keep a second copy that nothing bounds
    argv += ["--ulimit", "memlock=-1", *DEVICES[str(engine["accelerator"])]]
    if engine["accelerator"] == "ascend":
        first = int(engine.get("first_device") or 0)
        for index in range(int(engine.get("tensor_parallel") or 1) * int(engine.get("data_parallel") or 1)):
            argv += ["--device", f"/dev/davinci{first + index}"]
    for path in dict.fromkeys(filter(None, [f"{engine['model_dir']}:{engine['model_dir']}:ro", f"{folder}:{folder}:ro"])):
        argv += ["--volume", path]
    if kv_dir:
        argv += ["--volume", f"{kv_dir}:{kv_dir}"]
    for key, value in sorted(process["env"].items()):
        argv += ["--env", f"{key}={value}"]
    argv += ["--entrypoint", process["argv"][0], image, *process["argv"][1:]]
    return {**process, "argv": argv, "env": {}, "container": {"runtime": argv[0], "name": name}}


def _software(settings: Settings, connector: Optional[str]) -> Dict[str, Any]:
    """Return the flat keys that are compared between arms: an arm without a medium has the engine's own keys only."""
    e = settings.engine
    names = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "max_model_len", "max_num_seqs", "max_num_batched_tokens")
    flat: Dict[str, Any] = {"model": e["model"], "kind": e["kind"], "accelerator": e["accelerator"]}
    flat.update(
        {name: e[name] for name in (*names, "block_tokens", "kv_cache_dtype", "image", "image_id", "packages", "cool") if e.get(name) is not None}
    )
    flat.update({f"l0.{key}": value for key, value in settings.tier("l0").items() if value is not None})
    if settings.kind:
        flat.update({"offload": settings.kind, "storage": settings.storage, "kv_tier": connector})
        flat.update({key: settings.values[key] for key in ("chunk_tokens", "hash", "load_failure")})
        flat.update({f"{tier}.{key}": value for tier in ("l1", "l2") for key, value in settings.tier(tier).items() if value is not None})
    return flat
