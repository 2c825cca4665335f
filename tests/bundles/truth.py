"""What a test chooses: the plan, and what is true in the simulated world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gates.plan import Plan, parse_plan

# A plan of small runs: the same structure, a tenth of the requests. Tests that count requests use the default plan instead.
SMALL = {
    "workload": {"tiers": [2, 4, 8], "requests_per_run": {"min": 24, "per_concurrency": 6}, "identity_repeats": 8, "warmup_requests": 2},
    "g3": {"ttft_p50_drop_min": {"tiers": [2, 4, 8]}, "throughput_gain_band": {"tiers": [2, 4]}},
    "g4": {"tier": 4, "window_requests_min": 10},
}
FAST = {"rig": {"simulated": True, "time_scale": "3600"}, "g4": {"duration": "24 h", "gap_max": "30 min", "leak": {"warmup": "4 h"}}}


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return maps merged key by key, later ones winning."""
    out: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = out.get(key)
            out[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out


def small_plan(differences: Mapping[str, Any] | None = None) -> Plan:
    """Return a plan of small runs with further differences."""
    return parse_plan(merged(SMALL, differences or {}))


def soak_plan(differences: Mapping[str, Any] | None = None) -> Plan:
    """Return a plan with a soak of a day, 3600 times as fast."""
    return small_plan(merged(FAST, differences or {}))


@dataclass(frozen=True)
class Truth:
    """What is true in the simulated world. Times in milliseconds a unit of concurrency."""

    engine: str = "vllm"  # whose counters are on the page: vllm or sglang
    engine_hosts: int = 1  # that share the load of a soak
    drop: float = 0.30  # of the candidate's TTFT against the baseline's
    baseline_ms: float = 17.0
    recompute_ms: float = 28.0
    decode_ms: float = 17.0 * 0.1696  # with the default drop the gain lies in the middle of the band: +34.5 %
    noise: float = 0.01  # of single requests
    run_noise: float = 0.0  # of whole runs
    seed: int = 1
    offsets: bool = False  # write chunk offsets (bigger files; the judge does not need them)
    noise_floor: float = 0.0  # share of outputs in which recompute differs from itself
    baseline_runs: tuple[float, ...] = ()  # a factor on the TTFT of each baseline run
    candidate_drops: tuple[float, ...] = ()  # the drop of each candidate run, where it is not `drop`
    candidate_decode: float = 1.0  # a factor on the candidate's decode time
    placebo: float = 1.0  # a factor on the placebo's times over recompute's
    # soak: factor on time by progress 0..1, error predicate by request number, bytes of memory by progress
    drift: Callable[[float], float] = lambda _: 1.0
    fails: Callable[[int], bool] = lambda _: False
    leak_bytes: float = 0.0
