"""The engine as it ran, from engine.json: whether it is of the sealed platform, and its own settings are those of the other runs.

arm.json holds what the site set; command line and configuration are what the engine itself was started with and reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gates.plan import Plan
from gates.text import Text

Engine = Mapping[str, Any]
IDENTITY = ("model", "version", "num_gpu_blocks", "block_tokens", "kv_bytes_per_token")  # what every run of an engagement has in common

_LAB = re.compile(r"(^|/)lab[-_]engine(\.pyz)?$")
_FAMILIES = ("vllm", "sglang")
_MODULE = re.compile(r"(?:.*/)?(vllm|sglang)(?:\.[A-Za-z0-9_.]+)?")
NO_ACCELERATOR = ("cpu", "none")
# Where it runs and what it listens on: no part of the work. `faults` are the simulated engine's, which says what it is.
_PLACE = frozenset({"port", "host", "config", "seed", "random_seed", "state_path", "faults"})
_OF_ONE_INSTANCE = frozenset({"tier.array.stats_path"})
# The external tier is what the arms differ in: arm.json is held against the allow-list for it.
_TIER = ("tier", "kv_transfer", "kv_offload", "kv_events", "kv_connector", "lmcache", "enable_lmcache", "hicache", "enable_hierarchical_cache")
_TIER_TOO = ("mooncake", "disaggregation")
_SHORT = {"-tp": "--tensor-parallel-size", "-pp": "--pipeline-parallel-size", "-dp": "--data-parallel-size", "-q": "--quantization"}
_SAME_NAME = {
    "tp_size": "tensor_parallel_size",
    "tp": "tensor_parallel_size",
    "dp_size": "data_parallel_size",
    "dp": "data_parallel_size",
    "ep_size": "expert_parallel_size",
    "ep": "expert_parallel_size",
    "pp_size": "pipeline_parallel_size",
}


def against_plan(plan: Plan, engine: Engine) -> Iterator[tuple[str, Text | None]]:
    """Yield (what, difference) for each sealed fact of the platform that an engine can tell; None where it does not tell it.

    Model and framework are compared by name, a version in the plan's framework ("vLLM 0.11") by its leading numbers. A fact that is null in
    the plan was not sealed. Accelerators are counted by G1. Several instances are told by `instances`; without it the engine is one.
    """
    platform = plan.platform
    if platform.model is not None:
        told = engine.get("model")
        yield from _compared("model", platform.model, told if isinstance(told, str) else None, same_name(platform.model, told))
    family = framework_of(engine)
    if platform.framework is not None:
        name, _, version = platform.framework.strip().partition(" ")
        wanted = name.lower() if name.lower() == "lab-engine" else name.lower().partition("-")[0]
        yield from _compared("framework", name, family, wanted == family)
        if version.strip():
            mine = str(engine.get("version") or "") or None
            yield from _compared("version", version.strip(), mine, _same_version(version.strip(), mine))
    if platform.model_config_sha256 is not None:
        digest = engine.get("model_config_sha256")
        yield from _compared("model_config_sha256", platform.model_config_sha256, digest, digest == platform.model_config_sha256)
    accelerated = platform.accelerator is not None and platform.accelerator.lower() not in NO_ACCELERATOR
    if accelerated and family != "lab-engine":  # the simulated engine lays nothing out over accelerators
        layout = layout_of(engine)
        for key, want in (("tp", platform.layout.tp), ("ep", platform.layout.ep)):
            yield from _compared(f"layout.{key}", want, layout.get(key), layout.get(key) == want)
    count = len(instances_of(engine))
    yield from _compared("layout.instances", platform.layout.instances, count, count == platform.layout.instances)


def _compared(what: str, want: Any, told: Any, same: bool) -> Iterator[tuple[str, Text | None]]:
    if told is None or told == "":
        yield what, None
    elif not same:
        text = Text("the engine's {k} is {v}; the plan sealed {w} (platform.{k}).", "引擎的 {k} 为“{v}”；计划封存的为“{w}”（platform.{k}）。")
        yield what, text.fill(k=what if what != "version" else "framework", v=str(told)[:120], w=want)


def silent(plan: Plan, engine: Engine) -> list[str]:
    """Return what the plan sealed and engine.json does not tell."""
    return [f"platform.{what}" for what, wrong in against_plan(plan, engine) if wrong is None]


def untold(plan: Plan, engine: Engine) -> list[str]:
    """Return what engine.json does not tell of what every run must: identity, each sealed fact of the platform, and its own settings."""
    lacking = [key for key in IDENTITY if engine.get(key) is None] + silent(plan, engine)
    return lacking if engine.get("argv") or engine.get("config") else [*lacking, "argv, config"]


def differs_from_plan(plan: Plan, engine: Engine) -> Text | None:
    """Return the first difference between an engine and the platform that was sealed, or None."""
    return next((wrong for _, wrong in against_plan(plan, engine) if wrong is not None), None)


def instances_of(engine: Engine) -> list[Engine]:
    """Return what each instance reports of itself: of one engine alone its own words."""
    listed = engine.get("instances")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) and listed else [engine]


def instances_differ(engine: Engine, folders: Mapping[str | None, Sequence[str]] | None = None) -> Text | None:
    """Return the first difference between the instances of one engine: they serve one load, so they must be alike but for their place.

    `folders`: of each engine host those that the job gave to its engine: where one host's own stands in its settings, the other's may stand there.
    """
    first, *others = instances_of(engine)
    for n, other in enumerate(others, 1):
        keys = [key for key in IDENTITY if first.get(key) != other.get(key)]
        old, new = (_placed(one, (folders or {}).get(one.get("host"), ())) for one in (first, other))
        keys += [key for key in _differences(old, new, tier=True) if key not in _OF_ONE_INSTANCE]
        if keys:
            text = Text("instance {n} differs from instance 0 in {k} (engine.json).", "实例 {n} 与实例 0 的 {k} 不同（engine.json）。")
            return text.fill(n=n, k=", ".join(keys[:3]))
    return None


def framework_of(engine: Engine) -> str | None:
    """Return lab-engine, vllm or sglang, by the command line and by whose metrics the engine serves; None where neither tells one of them."""
    words = _words(engine.get("argv"))
    if str(engine.get("version") or "").startswith("lab-") or any(_LAB.search(word) for word in words):
        return "lab-engine"
    served = {name.partition(":")[0] for name in _words(engine.get("metrics_names")) if ":" in name} & set(_FAMILIES)
    started = {match[1] for word in words if (match := _MODULE.fullmatch(word))}
    found = served or started
    return found.pop() if len(found) == 1 else None


def layout_of(engine: Engine) -> dict[str, int]:
    """Return {tp, ep} as the command line of vLLM or SGLang says; what it leaves out is 1, their default. Empty: no such command line."""
    words = _words(engine.get("argv"))
    family = next((match[1] for word in words if (match := _MODULE.fullmatch(word))), None)
    told = options(words)
    if family is None or (family == "vllm" and "config" in told):  # vLLM's --config names a file that nobody brought
        return {}
    tp, dp = _number(told.get("tensor_parallel_size")), _number(told.get("data_parallel_size"))
    wide = tp * dp if "enable_expert_parallel" in told else 1
    return {"tp": tp, "ep": wide if family == "vllm" else _number(told.get("expert_parallel_size"))}


def settings_of(engine: Engine) -> dict[str, str]:
    """Return an engine's own settings as flat keys: the options of its command line and the configuration that it reports."""
    config = engine.get("config")
    flat = dict(_flat("", config)) if isinstance(config, Mapping) else {}
    return {**flat, **{key: " ".join(values) for key, values in options(_words(engine.get("argv"))).items()}}


def setting_differences(a: Engine, b: Engine, *, tier: bool) -> list[str]:
    """Return the settings in which two engines differ, the place apart; those of the external tier only with `tier`."""
    return _differences(settings_of(a), settings_of(b), tier=tier)


def _differences(old: Mapping[str, str], new: Mapping[str, str], *, tier: bool) -> list[str]:
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key) and not _of_the_place(key) and (tier or not _of_the_tier(key)))


def _placed(engine: Engine, folders: Sequence[str]) -> dict[str, str]:
    """Return an engine's settings with its host's own folders named by their number."""
    found = settings_of(engine)
    for n, folder in enumerate(folders):
        found = {key: value.replace(folder, f"{{{n}}}") for key, value in found.items()}
    return found


def options(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the options of a command line, behind the module where one is named (before it stand those of a container's runtime)."""
    start = next((n for n, word in enumerate(words) if _MODULE.fullmatch(word)), 0)
    found: dict[str, tuple[str, ...]] = {}
    key = ""
    for given in words[start:]:
        word = _SHORT.get(given, given)
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            key = _name(name)
            found[key] = (*found.get(key, ()), *((value,) if value else ()))
        elif key:
            found[key] = (*found[key], word)
    return found


def _name(name: str) -> str:
    plain = name.lower().replace("-", "_")
    return _SAME_NAME.get(plain, plain)


def _number(values: tuple[str, ...] | None) -> int:
    return int(values[-1]) if values and values[-1].isdecimal() else 1


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{path}.{_name(str(key))}" if path else _name(str(key)), inner)
    elif value is not None:
        yield path, str(value)


def _of_the_place(key: str) -> bool:
    return key.partition(".")[0] in _PLACE


def _of_the_tier(key: str) -> bool:
    return key.startswith((*_TIER, *_TIER_TOO))


def same_name(a: str, b: Any) -> bool:
    """Return whether two names of a model are one: whole, or by the last part of a path or repository."""
    if not isinstance(b, str):
        return False
    mine, theirs = ({name.strip().casefold(), name.strip().rstrip("/").rpartition("/")[2].casefold()} for name in (a, b))
    return bool(mine & theirs)


def _same_version(want: str, told: str | None) -> bool:
    mine, theirs = want.removeprefix("v"), (told or "").removeprefix("v")
    return theirs == mine or theirs.startswith((f"{mine}.", f"{mine}+"))


def _words(value: Any) -> list[str]:
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
