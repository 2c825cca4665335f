"""Attempts that must not pass, one for each claim that can be breached and each fault of an arrival: what removals are tried on.

Each is whole evidence of a truth that is wrong in one way. `g3()` and `g1()` give them by name, made anew from one base each.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from tests.bundles import Truth, g2_evidence, g3_evidence, merged, small_plan
from tests.bundles.evidence import Evidence
from tests.bundles.job import lag_digits
from tests.unit.gates.test_properties import TINY
from tests.unit.rack.simulate import accounted, demo_plan
from tests.unit.rack.simulate import evidence as rack_evidence

Edit = Callable[[Evidence], Any]
Row = dict[str, Any]
STEP = "run-2"  # the candidate's first run
PLAN = merged(TINY, {"arms": {"array_cache": "cold"}, "validity": {"client_share_of_ttft_max": "0.05"}})
RACK = (
    *("gpu-ecc", "gpu-firmware", "gpu-narrow", "port-errors", "interface-errors", "hot-optic", "no-pfc", "port-down", "failed-self-test"),
    *("missing-drive", "swapped-drive", "used-drive", "wrong-firmware", "narrow-link", "na-fields", "json-prefix", "media-errors"),
    *("link-partner-errors", "logged-error", "lost-log", "kernel-faults", "slow-governor", "bare-node", "bit-errors"),
)
# Faults whose check decides only where the plan requires its group. What a survey wrote of them is held against its own account.
REQUIRED = {"kernel-faults": "kernel_log", "slow-governor": "host_tuning", "bare-node": "host_tuning", "bit-errors": "link_fec"}


def rows(name: str, edit: Callable[[Row], Any], step: str = STEP) -> Edit:
    def change(found: list[Row]) -> None:
        for row in found:
            edit(row)

    return lambda e: e.lines(step, name, change)


def document(name: str, edit: Callable[[Row], Any], step: str = STEP) -> Edit:
    def change(data: Row) -> None:
        edit(data)

    return lambda e: e.json(step, name, change)


def measured(edit: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return lambda row: edit(row) if row["phase"] == "measure" else None


def after(edit: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return lambda row: edit(row) if (row["phase"], row["when"]) == ("measure", "after") else None


def moved(row: Row, source: str, to: str, share: float) -> None:
    """Let tokens of one source have come from another."""
    one, other = (next(k for k in row["metrics"] if f'source="{name}"' in k) for name in (source, to))
    lost = int(float(row["metrics"][one]) * share)
    row["metrics"] |= {one: str(float(row["metrics"][one]) - lost), other: str(float(row["metrics"][other]) + lost)}


def metric(row: Row, word: str, value: str) -> None:
    row["metrics"] = {k: value if word in k else v for k, v in row["metrics"].items()}


def first_half(row: Row) -> None:
    """Let the client see the first text when as much time again has passed as the engine took."""
    row["server"]["send_ns"] = row["sent_ns"] + (row["first_text_ns"] - row["sent_ns"]) // 2


def lagging(d: Row, p99: int, most: int, ticks: int = 2_995) -> None:
    """Let the client's loop have lagged by so many nanoseconds, at p99 and at most."""
    d.update(loop_lag_p99_ns=p99, loop_lag_max_ns=most, loop_ticks=ticks, loop_lag_digits=lag_digits(p99, most, ticks))


def unstamped(late: int, lag: int, by_loop: int) -> Edit:
    def edit(e: Evidence) -> None:
        rows("records.jsonl", measured(lambda row: row.update(server=None)))(e)
        document(
            "client.json",
            lambda d: (
                d["server_stamps"].update(stamped=0),
                d["receipts"].update(loop=by_loop),
                d["calibration"]["receipt"].update(late_p99_ns=late, late_max_ns=late),
                lagging(d, lag, 2 * lag),
            ),
        )(e)

    return edit


def warmed(row: dict[str, Any], part: int) -> None:
    """Let one `part`-th of the KV be in memory."""
    row["resident_bytes"] = row["bytes"] // part
    row["resident_pages"] = -(-row["resident_bytes"] // row["page_bytes"])


def two_directories(e: Evidence) -> None:
    """Let the KV lie in two directories, the second of which is warm before a tier."""
    document("job.json", lambda d: d["engine"].update(kv_dirs=["/kv", "/kv2"]))(e)
    e.lines(STEP, "coldness.jsonl", lambda found: [r for row in found for r in (row, {**row, "dir": "/kv2"})], renumber=True)
    rows("coldness.jsonl", lambda row: warmed(row, 2) if (row["dir"], row["when"]) == ("/kv2", "before_tier") else None)(e)


def other_configuration(step: str) -> Edit:
    def edit(e: Evidence) -> None:
        document("arm.json", lambda d: d.update({"engine.max_model_len": 1024}), step)(e)
        document("job.json", lambda d: d["arm"].update({"engine.max_model_len": 1024}), step)(e)

    return edit


def paused(e: Evidence) -> None:
    """Let half of the workers of the loop pause between two requests."""
    rows("records.jsonl", measured(lambda row: row.update(sent_ns=row["end_ns"] - (row["end_ns"] - row["sent_ns"]) // 2)))(e)


def failing(row: Row) -> None:
    if row["prompt"] == 3:
        row.update(error={"kind": "stream_error", "message": "x"}, first_text_ns=None, usage=None, finish_reason=None)


def stored_badly(row: Row) -> None:
    if row["phase"] == "store" and row["prompt"] == 0:
        row.update(error={"kind": "http", "message": ""}, http_status=500)


def previous_engine(row: Row) -> None:
    """Let the engine that was there before still be the one that runs."""
    row["engine"]["start_ticks"] = 1
    row["engine_before"] = {k: row["engine"][k] for k in ("pid", "start_ticks")}


G3: dict[str, Edit] = {
    "gpu cache": rows("counters.jsonl", after(lambda row: moved(row, "external_kv_transfer", "local_cache_hit", 0.1))),
    "page cache": rows("coldness.jsonl", lambda row: warmed(row, 2)),
    "page cache of one check": rows("coldness.jsonl", lambda row: warmed(row, 1) if row["when"] == "before_tier" else None),
    "page cache of one directory": two_directories,
    "never cold": rows("coldness.jsonl", lambda row: row.update(fs_type="tmpfs")),
    "engine not restarted": rows("coldness.jsonl", previous_engine),
    "engine changed": rows("coldness.jsonl", lambda row: row["engine"].update(pid=7) if row["when"] == "after_tier" else None),
    "array cache": rows("counters.jsonl", lambda row: row["array"].update(media_read_bytes=row["array"]["media_read_bytes"] // 2)),
    "hits": rows("counters.jsonl", after(lambda row: moved(row, "external_kv_transfer", "local_compute", 0.9))),
    "hits of recompute": rows("counters.jsonl", after(lambda row: moved(row, "local_compute", "external_kv_transfer", 0.5)), "recompute"),
    "process reads": rows("counters.jsonl", lambda row: row["engine_io"].update(read_bytes=0)),
    "device reads": rows("counters.jsonl", lambda row: row["diskstats"].update(read_sectors=0)),
    "stored half": rows("counters.jsonl", lambda row: metric(row, "store_bytes", "5000")),
    "store failed": rows("records.jsonl", stored_badly),
    "store phase failed": rows("phases.jsonl", lambda row: row.update(ok=False)),
    "fewer tokens": rows("records.jsonl", measured(lambda row: row.update(max_tokens=32))),
    "shorter answers": rows("records.jsonl", measured(lambda row: row["usage"].update(completion_tokens=32))),
    "other prompts": rows("records.jsonl", measured(lambda row: row.update(prompt_sha256=row["prompt_sha256"][::-1]))),
    "other blocks": document("engine.json", lambda d: d.update(num_gpu_blocks=640)),
    "other model": document("engine.json", lambda d: d.update(model="small")),
    "other configuration": other_configuration(STEP),
    "other configuration of recompute": other_configuration("recompute"),
    "other declared prompts": document("workload.json", lambda d: d["tiers"][0].update(prompts_sha256="0" * 64)),
    "failures of the baseline": rows("records.jsonl", measured(failing), "run-1"),
    "failures of the candidate": rows("records.jsonl", measured(failing)),
    "kv loads failed": rows("counters.jsonl", after(lambda row: metric(row, "load_failures", "3"))),
    "client share": rows("records.jsonl", measured(first_half)),
    "client lag": document("client.json", lambda d: lagging(d, 10**9, 3 * 10**9, 1_000)),
    "late receipts": unstamped(20_000_000, 200_000, 0),
    "lagging loop without the kernel": unstamped(40_000, 4_900_000, 1),
    "calibration off": document("client.json", lambda d: d["calibration"].update(measured_ttft_p50_ns=60_000_000)),
    "not told apart": document("client.json", lambda d: d["calibration"].update(told_apart=False)),
    "paused": paused,
    "outputs": rows("records.jsonl", measured(lambda row: row.update(output_sha256="f" * 64))),
    "no G2 baseline": lambda e: e.inputs(lambda d: d.update(g2_baseline=None)),
    "another G2 baseline": lambda e: e.inputs(lambda d: d["g2_baseline"]["tiers"]["2"].update(ttft_p50_ns=50_000_000)),
    "job stopped": document("exit.json", lambda d: d.update(outcome="stopped")),
}
TRUTHS: dict[str, Truth] = {
    "slow": Truth(drop=0.20),
    "slow decoding": Truth(candidate_decode=1.5),
    "placebo gains": Truth(placebo=0.9),
    "second pass faster": Truth(candidate_drops=(0.27, 0.35)),
    "baselines disagree": Truth(baseline_runs=(1.0, 1.08)),
}


# What can be wrong with any run, and so with the second one of a baseline.
G2 = (
    *("gpu cache", "page cache", "page cache of one check", "never cold", "engine not restarted", "engine changed", "array cache"),
    *("hits", "process reads", "device reads", "fewer tokens", "shorter answers", "other prompts", "other blocks", "other configuration"),
    *("client share", "client lag", "late receipts", "lagging loop without the kernel", "calibration off", "not told apart", "paused", "job stopped"),
)
G2_TRUTHS: dict[str, Truth] = {"not repeatable": Truth(baseline_runs=(1.0, 1.0, 1.3))}
CONDITIONAL: dict[str, Truth] = {
    "above the band": Truth(drop=0.40),
    "fragile": Truth(drop=0.265, noise=0.001, baseline_runs=(0.975, 1.02), decode_ms=1.2),
}


@functools.lru_cache(maxsize=1)
def _base_g2() -> Evidence:
    return g2_evidence(Truth(), small_plan(PLAN))


def g2(name: str) -> Evidence:
    """Return a baseline's evidence that is wrong in one way."""
    if name in G2_TRUTHS:
        return g2_evidence(G2_TRUTHS[name], small_plan(PLAN))
    evidence = copy.deepcopy(_base_g2())
    G3[name](evidence)
    return evidence


def good_g2() -> Evidence:
    """Return the baseline's evidence in which nothing is wrong."""
    return copy.deepcopy(_base_g2())


def conditional(name: str) -> Evidence:
    """Return a main gate's evidence that is worth no more than a conditional pass."""
    return g3_evidence(CONDITIONAL[name], small_plan(PLAN))


@functools.lru_cache(maxsize=1)
def _base() -> Evidence:
    return g3_evidence(Truth(), small_plan(PLAN))


def g3(name: str) -> Evidence:
    """Return a main gate's evidence that is wrong in one way."""
    if name in TRUTHS:
        return g3_evidence(TRUTHS[name], small_plan(PLAN))
    evidence = copy.deepcopy(_base())
    G3[name](evidence)
    return evidence


def g1(fault: str) -> Evidence:
    """Return the evidence of an arrival with one fault of the simulated rack."""
    files = dict(rack_evidence({fault: 1}))
    if fault not in REQUIRED:
        return Evidence("G1", demo_plan(), files, simulated=True)
    return Evidence("G1", demo_plan(evidence={"required": [REQUIRED[fault]]}), accounted(files), simulated=True)


def good() -> Evidence:
    """Return the main gate's evidence in which nothing is wrong."""
    return copy.deepcopy(_base())
