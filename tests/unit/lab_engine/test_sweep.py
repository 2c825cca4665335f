"""Seven bandwidths of the tier, in counted time: what is measured follows from the arithmetic of the physics and from nothing else.

In a closed loop of C clients that keeps a serial transfer busy, a request takes C x L from end to end (L: the transfer of its KV), of which the
decoding D is not part of the TTFT. So against another bandwidth: throughput gains L0 / L - 1, and the TTFT drops by 1 - (C L - D) / (C L0 - D).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.lab_engine.conftest import disk_folder
from tests.unit.lab_engine.lab import BLOCK, counted, prompt

OUTPUT = 64
PHYSICS = {"prefill_tokens_per_s": 1200000 / 16, "decode_base_s": 0.00045, "decode_per_sequence_s": 0.00002, "hbm_tokens": 40 * 9 * BLOCK}
REFERENCE = 30_900_000 / 16  # blocks here are a sixteenth of the demo's, and so are all rates
SWEEP = [0.8, 1.0, 1.15, 1.25, 1.345, 1.45, 1.6]
CELLS = {8: 72, 16: 96}  # fewer requests than a gate asks for: this is about the arithmetic


def cells() -> list[tuple[int, list[list[int]]]]:
    start, out = 0, []
    for concurrency, count in CELLS.items():
        out.append((concurrency, [prompt(n, blocks=8, suffix=4) for n in range(start, start + count)]))
        start += count
    return out


def measure(disk: Path, rate: float | None, **more: object) -> list[dict[str, float]]:
    tier = {"path": str(disk / "kv"), "read_bytes_per_s": rate} if rate else None
    return counted({**PHYSICS, "tier": tier, **more}, cells(), OUTPUT)


@pytest.fixture(scope="module")
def stored() -> Iterator[Path]:
    with disk_folder() as folder:
        measure(folder, REFERENCE)
        yield folder


def test_drop_and_gain_follow_the_bandwidth_where_the_arithmetic_predicts(stored: Path) -> None:
    load = 8 * BLOCK * 16 / REFERENCE
    base = measure(stored, REFERENCE)
    swept = [measure(stored, REFERENCE * share) for share in SWEEP]
    for i, concurrency in enumerate(CELLS):
        gains = [run[i]["rate"] / base[i]["rate"] - 1 for run in swept]
        drops = [1 - run[i]["ttft_p50"] / base[i]["ttft_p50"] for run in swept]
        assert gains == sorted(gains)
        assert drops == sorted(drops)
        decode = (OUTPUT - 1) * (0.00045 + 0.00002 * 2)
        for share, gain, drop in zip(SWEEP, gains, drops, strict=True):
            assert gain == pytest.approx(share - 1, abs=0.02)
            assert drop == pytest.approx(1 - (concurrency * load / share - decode) / (concurrency * load - decode), abs=0.03)
    gains_at_8 = {share: run[0]["rate"] / base[0]["rate"] - 1 for share, run in zip(SWEEP, swept, strict=True)}
    assert gains_at_8[1.25] < 0.29 <= gains_at_8[1.345] <= 0.40 < gains_at_8[1.45]  # below, inside and above the default plan's band


def test_the_same_engine_measured_twice_says_the_same(stored: Path) -> None:
    for a, b in zip(measure(stored, REFERENCE), measure(stored, REFERENCE), strict=True):
        assert a == pytest.approx(b, rel=0.005)  # time is counted; what is left is a page that the kernel did not let go of


def test_computing_costs_more_than_loading_and_storing_beside_it_costs_nothing(disk: Path) -> None:
    recompute = measure(disk, None)
    storing = measure(disk, REFERENCE)  # nothing is there yet: every prefix is computed and stored
    loading = measure(disk, REFERENCE)
    for a, b, c in zip(recompute, storing, loading, strict=True):
        assert b["ttft_p50"] == pytest.approx(a["ttft_p50"], rel=0.02)
        assert 1.5 < a["ttft_p50"] / c["ttft_p50"] < 2.0


def test_a_spread_of_service_times_moves_single_requests_and_not_the_rate(stored: Path) -> None:
    plain, spread = measure(stored, REFERENCE), measure(stored, REFERENCE, service_spread=0.05)
    for a, b in zip(plain, spread, strict=True):
        assert a["ttft_p50"] != b["ttft_p50"]
        assert b["rate"] == pytest.approx(a["rate"], rel=0.02)


def test_a_slow_tier_and_a_drift_are_seen_in_the_figures(stored: Path) -> None:
    sound = measure(stored, REFERENCE)
    slow = measure(stored, REFERENCE, faults={"tier_slowdown": 0.3})
    drifting = measure(stored, REFERENCE, faults={"drift_per_s": 0.1})
    for a, b, c in zip(sound, slow, drifting, strict=True):
        assert b["rate"] == pytest.approx(0.7 * a["rate"], rel=0.02)
        assert c["rate"] < 0.95 * a["rate"]
