"""Result files whose figures contradict each other are no measurement, however well each figure reads alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.readers.registry import read
from tests.unit.gates.test_compare import BASE, GOOD, codes, judged, met, result

FIXTURES = Path(__file__).parents[1] / "readers/fixtures"


def detailed(tier: int, ttft_s: float) -> dict[str, Any]:
    """Return one run of `vllm bench serve --save-detailed`: C streams without a pause, whose figures all agree."""
    n, out = 10 * tier, 64
    ttfts = [ttft_s * (1 + (i % 7 - 3) / 300) for i in range(n)]
    duration = sum(t + (out - 1) * 0.01 for t in ttfts) / tier
    ordered = sorted(ttfts)
    run = result(tier, 0.0, duration, total_input_tokens=1000 * n, total_output_tokens=out * n, output_throughput=out * n / duration)
    run |= {"request_throughput": n / duration, "total_token_throughput": (1000 + out) * n / duration}
    run |= {"mean_ttft_ms": sum(ttfts) / n * 1000, "median_ttft_ms": (ordered[n // 2 - 1] + ordered[n // 2]) * 500, "p99_ttft_ms": ordered[-1] * 1000}
    run |= {"ttfts": ttfts, "itls": [[0.01] * (out - 1)] * n, "input_lens": [1000] * n, "output_lens": [out] * n, "errors": [""] * n}
    return run


SLOW = {t: detailed(t, 3.5) for t in (8, 16, 32)}
FAST = {t: detailed(t, 2.45) for t in (8, 16, 32)}


def flattered(run: dict[str, Any]) -> dict[str, Any]:
    """Return a run with all that a reader looks at made better, and the redundant rates left as they were."""
    better = {k: run[k] * 0.7 for k in ("median_ttft_ms", "mean_ttft_ms", "p99_ttft_ms")} | {"ttfts": [v * 0.7 for v in run["ttfts"]]}
    return run | better | {"duration": run["duration"] * 0.75, "output_throughput": run["output_throughput"] / 0.75}


def test_files_whose_figures_all_agree_are_compared() -> None:
    document = judged(SLOW, FAST)
    assert (codes(document), document["verdict"]) == (set(), "conditional")


def test_a_flattered_copy_of_the_baseline_meets_no_limit() -> None:
    document = judged(SLOW, {t: flattered(run) for t, run in SLOW.items()})
    assert "rate_conflict" in codes(document)
    assert set(met(document).values()) == {None}
    assert document["verdict"] == "inconclusive"


def test_a_baseline_that_is_stretched_by_three_per_cent_contradicts_its_other_rates() -> None:
    stretched = {t: r | {"duration": r["duration"] * 1.03, "output_throughput": r["output_throughput"] / 1.03} for t, r in SLOW.items()}
    document = judged(stretched, FAST)
    assert (codes(document), document["verdict"]) == ({"rate_conflict"}, "inconclusive")


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("request_throughput", "rate_conflict"),
        ("total_token_throughput", "rate_conflict"),
        ("output_throughput", "rate_conflict"),
        ("mean_ttft_ms", "statistics_conflict"),
        ("p99_ttft_ms", "statistics_conflict"),
        ("median_ttft_ms", "p50_conflict"),
    ],
)
def test_one_figure_that_is_half_a_per_cent_off_is_named(key: str, code: str) -> None:
    document = judged(SLOW, {**FAST, 8: FAST[8] | {key: FAST[8][key] * 1.0051}})
    assert code in codes(document)
    assert met(document)["throughput_gain.c8"] is None


def test_figures_that_a_tool_printed_with_two_decimals_agree() -> None:
    keys = ("duration", "output_throughput", "request_throughput", "total_token_throughput", "mean_ttft_ms", "p99_ttft_ms")
    rounded = {t: run | {key: round(run[key], 2) for key in keys} for t, run in FAST.items()}
    assert codes(judged(SLOW, rounded)) == set()


@pytest.mark.parametrize(
    ("tool", "name", "path"),
    [
        ("sglang-bench", "sglang-bench/good-plain.jsonl", ("request_throughput",)),
        ("sglang-bench", "sglang-bench/good-plain.jsonl", ("total_throughput",)),
        ("sglang-bench", "sglang-bench/good-plain.jsonl", ("input_throughput",)),
        ("inferencex", "inferencex/good-plain.json", ("total_token_throughput",)),
        ("aiperf", "aiperf/good-summary-plain.json", ("request_throughput", "avg")),
        ("guidellm", "guidellm/good-plain.json", ("benchmarks", 0, "metrics", "requests_per_second", "successful", "mean")),
        ("inference-perf", "inference-perf/good-stage_0.json", ("successes", "throughput", "requests_per_sec")),
        ("inference-perf", "inference-perf/good-stage_0.json", ("successes", "throughput", "total_tokens_per_sec")),
        ("lmcache-bench", "lmcache-bench/good-summary.json", ("results", "input_throughput")),
    ],
)
def test_every_client_that_states_a_rate_twice_is_held_to_it(tool: str, name: str, path: tuple[Any, ...]) -> None:
    document = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    assert "rate_conflict" not in {p.code for p in read(tool, json.dumps(document).encode()).problems}
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] *= 1.03
    assert "rate_conflict" in {p.code for p in read(tool, json.dumps(document).encode()).problems}


def test_more_flight_than_the_concurrency_has_room_for_is_impossible() -> None:
    document = judged(BASE, {**GOOD, 32: result(32, 26350, 100.0)})  # 320 requests of 26 s in 100 s at 32 in flight
    assert codes(document) == {"impossible_flight"}
    assert met(document)["throughput_gain.c32"] is None


def test_the_time_of_whole_requests_has_room_too() -> None:
    document = judged(BASE, {**GOOD, 8: GOOD[8] | {"mean_e2el_ms": 10200}})
    assert codes(document) == {"impossible_flight"}
