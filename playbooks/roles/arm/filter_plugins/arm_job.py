"""The job file of one step: what the probe shall do on the target without the controller. Pure."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[2] / "probe" / "files"))
from load_clients import ENVIRONMENT, TOOLS, Work, describe
from probe.preflight import default_quota

_BEGIN_S, _TIER_S = 4.0, 1.2  # calibration, restart and cooling; before and after each tier: dropping caches, looking, waiting for idle
_NEEDED = ("key", "kind", "set", "tiers", "context_tokens", "suffix_tokens", "output_tokens")
_CELLS = {"checkpoint": ("bytes",), "tier_read": ("bytes",), "fio": (), "ib_write_bw": ("pairs",), "model_load": ("weights",)}
_TOOLS = ("fio", "ib_write_bw")  # on a simulated rack its own programs answer
_RATE_MARGIN = 4.0  # how much faster than by its rates an engine may be, when room for a soak's journals is asked for
_IDLE_S = 600  # until storing must have ended behind the last answer, where targets.engine.idle_timeout_s says nothing
_REQUEST_S, _MARGIN, _DECODE_S = 60.0, 3.0, 0.1  # least timeout of a request; its margin; of one output token with a full batch
_CLIENT_S = 60.0  # of one pass of a third-party client, beside its requests: it imports its libraries and makes its prompts
_STARTS = 2  # of the engine in one job: before the store phase, and cold; nobody knows beforehand how long a model loads


def arm_job(
    engine: Mapping[str, Any],
    step: Mapping[str, Any],
    attempt: Mapping[str, Any],
    site: Mapping[str, Any],
    host: Mapping[str, Any],
    faults: Mapping[str, float],
    job: str = "",
) -> dict[str, Any]:
    """Return the job file, the same at each call, so that a repeated start adopts the job that is there. Raises ValueError with a sentence.

    `job`: its id, by default that of the step. `step.timeout_s`: what the plan allows the job, in s; an estimate of ours never ends it sooner.
    """
    needed = (*_NEEDED, *(("seconds", "tier") if step.get("kind") == "soak" else ()))
    if lacking := [key for key in needed if key not in step]:
        raise ValueError(f"The step {step.get('key')} cannot become a job, it lacks {', '.join(lacking)}.")
    settings = site.get("engine") or {}
    reset = settings.get("cool") == "reset"
    expected = round(expected_s(engine, step), 1)
    soak = _soak(engine, step, site, host)
    return {
        "schema": 1,
        "job": job or f"{attempt['id']}-{step['key']}",
        "kind": step["kind"],
        "fence": int(attempt["fence"]),
        "host": host["name"],
        "expected_s": expected,
        "engine": engine_part(engine, site, host, faults),
        "arm": engine["arm"],
        "workload": {
            "seed": int(attempt["seed"]),
            "context_tokens": step["context_tokens"],
            "suffix_tokens": step["suffix_tokens"],
            "output_tokens": output_tokens(int(step["output_tokens"]), faults),
            "vocab": list(settings.get("vocab") or [100, 999]),
            "set": step["set"],
            "unique": True,
            "tiers": step["tiers"],
        },
        "phases": {
            "store": bool(step.get("store")) and bool(engine["kv_dirs"]),
            "store_concurrency": int(settings.get("store_concurrency", 8)),
            "cool": bool(step.get("cool", True)) and ("reset" if reset else True),
            "warmup": int(step.get("warmup", 0)),
            "canary": bool(step.get("canary")),
            "expect_hits": bool(step.get("canary")) and bool(engine["kv_dirs"]),
            "repeat": int(step.get("repeat", 0)),
            "chunk_offsets": step["kind"] != "soak",
        },
        "soak": soak,
        **_ports(site, host),
        **_cells(engine, step, site, host),
        "limits": {
            "request_timeout_s": max(request_timeout_s(engine, step), float(settings.get("request_timeout_s") or 0)),
            "start_timeout_s": engine["start_timeout_s"],
            "stop_timeout_s": engine["stop_timeout_s"],
            "idle_timeout_s": settings.get("idle_timeout_s", _IDLE_S),
            "disk_quota_bytes": int(site.get("disk_quota_bytes") or default_quota(soak)),
            # A soak's load has its seconds beside it: the probe starts this time anew when the load begins.
            "deadline_s": max(
                max(600, int(10 * (expected - _load_s(step)))) + _STARTS * engine["start_timeout_s"],
                int(step.get("timeout_s") or 0) - int(_load_s(step)),
            ),
        },
    }


def engine_part(engine: Mapping[str, Any], site: Mapping[str, Any], host: Mapping[str, Any], faults: Mapping[str, float]) -> dict[str, Any]:
    """Return the section `engine` of a job file: where one engine answers, how it is started and stopped on its host, and where its KV lies."""
    probe = [host["python"], "-I", f"{host['root']}/probe.pyz", "engine"]
    return {
        "base_url": engine["base_url"],
        **({"base_urls": engine["base_urls"]} if engine.get("base_urls") else {}),
        "model": engine["model"],
        "health_path": "/health",
        "metrics_path": "/metrics",
        "control": {
            "start": [*probe, "start", "--spec", engine["spec_path"]],
            # A restart that is skipped looks at the engine and lets it run: that it is the same process is then for the evidence to tell.
            "stop": [*probe, "status" if faults.get("skipped-reset") else "stop", "--spec", engine["spec_path"]],
            "env": {},
        },
        "pid_file": engine["pid_file"],
        "group": engine.get("group"),
        "metrics_urls": engine.get("metrics_urls") or [],
        "idle": engine.get("idle"),
        "caches": engine.get("caches"),
        "model_dir": engine.get("model_dir"),
        "kv_dirs": engine["kv_dirs"],
        "media": engine.get("media"),
        "array_stats": engine["array_stats"],
        "declared": engine["declared"],
        **({"reset": engine["reset"]} if (site.get("engine") or {}).get("cool") == "reset" else {}),
    }


def engine_parts(
    pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], site: Mapping[str, Any], faults: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return the section `engine` of each of these (engine, host)."""
    return [engine_part(engine, site, host, faults) for engine, host in pairs]


def cells_parts(
    pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], step: Mapping[str, Any], site: Mapping[str, Any]
) -> list[list[dict[str, Any]]]:
    """Return the cells of each of these (engine, host), by the host's own settings."""
    return [_cells(engine, step, site, host).get("cells", []) for engine, host in pairs]


def kv_bytes(engine: Mapping[str, Any], step: Mapping[str, Any], hosts: int = 1) -> int:
    """Return how many bytes of KV this step writes on a host, 0 where the arm has no medium. `hosts` share the load evenly (probe.shares).

    These are the stored prefixes, as often again as `step.ahead` says that later runs will leave as many beside them; the throw-away prompts; and of
    an arm that asks what was never stored (the placebo) everything. A soak's sentinel asks one prefix in each window that was never stored, and
    leaves it on the medium.
    """
    if not engine["kv_dirs"]:
        return 0
    context = int(step["context_tokens"])
    whole = context + int(step["suffix_tokens"]) + int(step["output_tokens"])
    # Each of several hosts has a sentinel of its own (probe.sentinel), with all its prefixes.
    sentinels = _stored(step) - _prefixes(step) + _windows(step)
    stored = _prefixes(step) * (1 + int(step.get("ahead", 0))) + hosts * sentinels if step.get("store") else 0
    new = int(step.get("warmup", 0))
    if step["kind"] == "run" and not step.get("canary"):
        new += _prefixes(step)
    new += sum(int(client["requests"]) for client in step.get("clients") or ())
    return (-(-stored // hosts) * context + (-(-new // hosts) + bool(step.get("canary"))) * whole) * int(engine["kv_token_bytes"])


def expected_s(engine: Mapping[str, Any], step: Mapping[str, Any]) -> float:
    """Return how long the job should take in seconds, from token counts and the engine's rates: compute and transfer are serial resources."""
    prefill, request = _prefill_s(engine, step), _request_s(engine, step)
    store = _stored(step) * prefill if step.get("store") and engine["kv_dirs"] else 0.0
    other = (int(step.get("warmup", 0)) + int(step.get("repeat", 0))) * prefill
    for client in step.get("clients") or ():  # one pass stores, one measures
        other += 2 * (_CLIENT_S + int(client["requests"]) * prefill) + _BEGIN_S
    load = float(step["seconds"]) if step["kind"] == "soak" else sum(int(tier["requests"]) for tier in step["tiers"]) * request
    return float(_BEGIN_S + _TIER_S * len(step["tiers"]) + store + other + load)


def _prefill_s(engine: Mapping[str, Any], step: Mapping[str, Any]) -> float:
    return (int(step["context_tokens"]) + int(step["suffix_tokens"])) * float(engine["prefill_token_s"])


def _request_s(engine: Mapping[str, Any], step: Mapping[str, Any]) -> float:
    """Return the seconds for which one request of the load keeps its serial resource: it is loaded where the arm has it, else computed."""
    loads = bool(step.get("canary")) and engine["load_token_s"] is not None
    return int(step["context_tokens"]) * float(engine["load_token_s"]) if loads else _prefill_s(engine, step)


def request_timeout_s(engine: Mapping[str, Any], step: Mapping[str, Any]) -> float:
    """Return the seconds after which a request counts as failed: with as many in flight as the largest tier has, the last of them waits for all.

    Prefill is serial; what is loaded instead takes no longer where the product is worth anything. Three times that, at least a minute.
    """
    prompt = int(step["context_tokens"]) + int(step["suffix_tokens"])
    most = max(int(tier["tier"]) for tier in (*step["tiers"], {"tier": step.get("tier") or 1}))
    alone = prompt * max(float(engine["prefill_token_s"]), float(engine["load_token_s"] or 0))
    return float(max(_REQUEST_S, math.ceil(_MARGIN * (most * alone + int(step["output_tokens"]) * _DECODE_S))))


def _load_s(step: Mapping[str, Any]) -> float:
    """Return the seconds of a soak's load, 0 of a run, whose length is a count of requests."""
    return float(step["seconds"]) if step["kind"] == "soak" else 0.0


def output_tokens(wanted: int, faults: Mapping[str, float]) -> int:
    """Return the output length that the client asks for; a rig that is not fair asks one arm for less."""
    return max(2, round(wanted * (1 - min(0.9, 0.25 * faults.get("unequal-work", 0.0)))))


def _soak(engine: Mapping[str, Any], step: Mapping[str, Any], site: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any] | None:
    if step["kind"] != "soak":
        return None
    optional: dict[str, Any] = {"sentinel": step["sentinel"]} if step.get("sentinel") else {}
    if host.get("counters") is not None:  # the plan's fatal counters: the probe refuses a soak in which one has no source
        optional["counters"] = list(host["counters"])
    if step.get("injections"):
        optional["injections"] = [{**row, **_commands(str(row["action"]), site)} for row in step["injections"]]
    return {
        **optional,
        "seconds": step["seconds"],
        "tier": step["tier"],
        "telemetry_s": step["telemetry_s"],
        "rotate_prefixes": _prefixes(step),
        "request_cap": step.get("request_cap"),
        "kernel_log": True,
        "requests_per_s": round(_RATE_MARGIN / max(_request_s(engine, step), 1e-6), 3),
    }


def _ports(site: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """Return the storage network's ports on this host, where the engagement names them, and where the programs that tell of them lie on a rack."""
    named = storage_ports(site, str(host["name"]))
    return {**({"ports": named} if named else {}), **({"path_prefix": [f"{host['root']}/rack/bin"]} if site.get("rack") else {})}


def storage_ports(site: Mapping[str, Any], host: str) -> list[str]:
    """Return the network devices of the storage network on a host, where the engagement names them (targets.fabric)."""
    fabric = site.get("fabric") or {}
    own = (fabric.get("hosts") or {}).get(host) or {}
    rows = own.get("interfaces") or fabric.get("interfaces") or []
    return [str(row["netdev"]) for row in rows if row.get("netdev")]


def _commands(action: str, site: Mapping[str, Any]) -> dict[str, Any]:
    """Return {start, stop} of a disturbance, which the plan names and the site describes; the probe itself knows how to restart the engine."""
    if action == "engine-restart":
        return {}
    found = (site.get("injections") or {}).get(action) or {}
    if not found.get("start"):
        raise ValueError(f"The plan's injection {action} has no command: targets.injections.{action}.start is missing.")
    return {key: [str(word) for word in found.get(key) or []] for key in ("start", "stop")}


def _cells(engine: Mapping[str, Any], step: Mapping[str, Any], site: Mapping[str, Any], host: Mapping[str, Any]) -> dict[str, Any]:
    """Return {cells: [...]} with the site's settings of each cell that the plan asks for, in the probe's order; nothing where there is none.

    A setting may be one value for all, or differ by arm, {ARM: settings} below `by_arm`, or by engine host, {HOST: settings} below `by_host`. A cell
    that reads the tier has no place in an arm without one.
    """
    rows = []
    for kind in _CELLS:
        if kind not in (step.get("cells") or ()) or (kind == "tier_read" and not engine["kv_dirs"]):
            continue
        given = dict((site.get("cells") or {}).get(kind) or {})
        by_arm, by_host = given.pop("by_arm", None) or {}, given.pop("by_host", None) or {}
        row = {"cell": kind, **given, **(by_arm.get(step["arm"]) or {}), **(by_host.get(str(host["name"])) or {})}
        if site.get("rack") and kind in _TOOLS:
            row.setdefault("path_prefix", [f"{host['root']}/rack/bin"])
        loads = engine.get("model_dir")
        if kind == "model_load" and loads and row.setdefault("weights", loads) != loads:
            raise ValueError(
                f"targets.cells.model_load.weights is {row['weights']}, and the engine loads {loads}. Leave it out; an arm with the model on another "
                "medium says so by its own model_dir."
            )
        if lacking := [key for key in _CELLS[kind] if key not in row]:
            raise ValueError(f"The plan asks for the cell {kind}, and targets.cells.{kind} lacks {', '.join(lacking)}.")
        rows.append(row)
    rows += [_client(engine, step, site, client) for client in step.get("clients") or ()]
    return {"cells": rows} if rows else {}


def _client(engine: Mapping[str, Any], step: Mapping[str, Any], site: Mapping[str, Any], client: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cell of a third-party client: its command line, and the name under which its result stands beside the run's own files.

    Where it is installed is the site's (targets.clients.TOOL): `program`, of vllm-bench the `python` of an environment that holds vLLM, and its
    `tokenizer`, by default the folder of the engine's model.
    """
    tool, tier = str(client["tool"]), int(client["tier"])
    if tool not in TOOLS:
        raise ValueError(f"The plan asks for the client {tool}; this service knows {', '.join(TOOLS)}.")
    given, key = dict((site.get("clients") or {}).get(tool) or {}), "python" if tool == "vllm-bench" else "program"
    given.setdefault("tokenizer", (site.get("engine") or {}).get("model_dir"))
    if lacking := [name for name in (key, "tokenizer") if not given.get(name)]:
        raise ValueError(f"The plan asks for the client {tool}, and targets.clients.{tool} lacks {', '.join(lacking)}.")
    work = Work(
        base_url=engine["base_url"],
        model=engine["model"],
        concurrency=tier,
        requests=int(client["requests"]),
        prompt_tokens=int(step["context_tokens"]) + int(step["suffix_tokens"]),
        output_tokens=int(step["output_tokens"]),
        tokenizer=str(given["tokenizer"]),
    )
    made = describe(tool, str(given[key]), work)
    env = {**ENVIRONMENT, **{str(k): str(v) for k, v in (given.get("env") or {}).items()}}
    file = f"client-{tool}-c{tier}.json"
    return {
        "cell": "client",
        "tool": tool,
        "tier": tier,
        "requests": work.requests,
        "file": file,
        "env": env,
        **made,
        "timeout_s": given.get("timeout_s"),
    }


def _prefixes(step: Mapping[str, Any]) -> int:
    count = sum(int(tier["requests"]) for tier in step["tiers"])
    return int(step.get("rotate_prefixes") or count) if step["kind"] == "soak" else count


def _stored(step: Mapping[str, Any]) -> int:
    """Return how many prefixes the store phase sends: those of the load, and those of the soak's sentinel."""
    return _prefixes(step) + int((step.get("sentinel") or {}).get("prefixes") or 0)


def _windows(step: Mapping[str, Any]) -> int:
    """Return how many windows the sentinel of a soak has at most."""
    sentinel = step.get("sentinel")
    return int(float(step["seconds"]) // float(sentinel["every_s"])) + 1 if sentinel else 0


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters of this file."""
        return {"arm_job": arm_job, "arm_engine_parts": engine_parts, "arm_cells_parts": cells_parts, "arm_kv_bytes": kv_bytes}
