"""G4 exactly at each limit, and one unit in the last place of its evidence on either side of it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from gates.g4_soak import judge
from gates.model import Verdict
from tests.bundles import Evidence
from tests.bundles.kernel import kernel_says
from tests.unit.gates.even_soak import S, plan_of
from tests.unit.gates.limits import numeric_limits, told_on_its_side
from tests.unit.gates.part_health import GPU, come, drive_that, gpu_that, lost_for, throttled_readings
from tests.unit.gates.rig import cached, paused, stepped
from tests.unit.gates.soaks import (
    MS,
    another_process,
    answers,
    busy,
    counted,
    fading,
    failures,
    files_of_the_tier,
    handles,
    idle,
    in_a_row,
    injected,
    leak,
    load,
    recovered,
    restarts,
    rising,
    silence,
    straight,
    uneven,
    without,
)

PASS, FAIL, INCONCLUSIVE, INVALID = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.INVALID


NONE = {0: PASS, 1: FAIL}
LATER, EARLIER = {-1: PASS, 0: PASS, 1: FAIL}, {1: PASS, 0: PASS, -1: FAIL}
# (check, its evidence at a value, {value: verdict}); where a figure is made from many, it is the distance from the limit in ns, requests or tokens
TABLE: list[tuple[str, Callable[[int], Evidence], dict[int, Verdict]]] = [
    ("g4.evidence", without, {0: PASS, 1: INCONCLUSIVE}),
    ("g4.validity", idle, {0: PASS, 1: INVALID}),
    ("g4.duration", lambda off: load(late=off), {1: PASS, 0: PASS, -1: INCONCLUSIVE}),
    ("g4.clock_restarts", restarts, {0: PASS, 1: PASS, 2: INCONCLUSIVE}),
    ("g4.engine_restarts", another_process, NONE),
    ("g4.error_rate", failures, {11: PASS, 12: PASS, 13: FAIL}),
    ("g4.recovery", recovered, {1: PASS, 0: PASS, -1: FAIL}),
    ("g4.error_budget_short", in_a_row, {2: PASS, 3: PASS, 4: FAIL}),
    ("g4.error_budget_long", in_a_row, {5: PASS, 6: PASS, 7: FAIL}),
    ("g4.drift_ttft_p50", lambda off: load(ttft=lambda w: 2000 * MS if w < 6 else 2100 * MS + off), LATER),
    ("g4.drift_throughput", lambda off: load(requests=lambda w: 21 + off if w < 6 else 20), LATER),
    ("g4.drift_ttft_p99", lambda off: load(ttft=lambda w: 2000 * MS if w < 6 else 2100 * MS + off), LATER),
    ("g4.excursion_ttft_p50", lambda off: load(ttft=straight(lambda w: 2090 * MS + 20 * MS * w, off)), EARLIER),
    ("g4.excursion_throughput", lambda off: load(requests=straight(lambda w: 231 - 2 * w, off)), EARLIER),
    ("g4.steady_ttft_p50", lambda off: load(ttft=uneven(2000 * MS, 400 * MS, off)), LATER),
    ("g4.steady_throughput", lambda off: load(requests=uneven(20, 4, off)), LATER),
    ("g4.leak", leak, {345_601: PASS, 345_600: PASS, 345_599: FAIL}),
    ("g4.leak_fds", handles("fds"), {17_281: PASS, 17_280: PASS, 17_279: FAIL}),
    ("g4.leak_threads", handles("threads"), {17_281: PASS, 17_280: PASS, 17_279: FAIL}),
    ("g4.leak_kv", files_of_the_tier, {17_281: PASS, 17_280: PASS, 17_279: FAIL}),
    ("g4.excursion_hits", fading, EARLIER),
    ("g4.client_cpu", busy, {599: PASS, 600: PASS, 601: FAIL}),
    ("g4.pauses", lambda us: paused(load(), ["soak"], us), {99_999: PASS, 100_000: PASS, 100_001: FAIL}),
    ("g4.corrected_bits", lambda n: paused(load(), ["soak"], 40, bits=n), {2_399_999: PASS, 2_400_000: PASS, 2_400_001: FAIL}),
    ("g4.port_errors", lambda n: paused(load(), ["soak"], 40, errors=n), NONE),
    ("g4.clock_steps", lambda ns: stepped(load(), "soak", ns), {127_999_999: PASS, 128_000_000: PASS, 128_000_001: FAIL}),
    ("g4.page_cache_growth", lambda n: cached(load(), ["soak"], n), {6_291_456: PASS, 6_291_457: FAIL}),  # of 62,914,560 bytes of files
    ("g4.telemetry_coverage", silence(20, 25, 24_410 * MS), {-1: PASS, 0: PASS, 1: INCONCLUSIVE}),
    ("g4.telemetry_gap", silence(20, 33, 60 * S), {-1: PASS, 0: PASS, 1: INCONCLUSIVE}),
    ("g4.counter_aer_fatal", counted, NONE),
    ("g4.sentinel_answers", answers, NONE),
    ("g4.injection_1", injected, NONE),
    ("g4.kernel_log", lambda n: kernel_says(load(), *["block nvme4n1: no usable path - requeuing I/O"] * n), NONE),
    ("g4.drive_same", come, NONE),
    ("g4.drive_paths", lost_for, NONE),
    ("g4.drive_heat", lambda left: drive_that(temperature_k=350 - left), {2: PASS, 1: PASS, 0: FAIL}),
    ("g4.drive_throttle", lambda n: drive_that(throttle1_begun=n), NONE),
    ("g4.drive_media_errors", lambda n: drive_that(media_errors=n), NONE),
    ("g4.drive_warning", lambda bits: drive_that(critical_warning=bits), NONE),
    ("g4.drive_spare", lambda fall: drive_that(spare_percent=100 - fall), NONE),
    ("g4.drive_wear", lambda more: drive_that(used_percent=1 + more), {0: PASS, 1: PASS, 2: FAIL}),
    ("g4.gpu_heat", lambda left: gpu_that(temperature_c={"hotspot": 100 - left, "mem": 60}), {2: PASS, 1: PASS, 0: FAIL}),
    ("g4.gpu_throttle", lambda n: gpu_that(throttle={**GPU["throttle"], "prochot": n}), NONE),
    ("g4.gpu_throttled", throttled_readings, {0: PASS, 1: PASS, 2: FAIL}),
]


@pytest.mark.parametrize(("check", "make", "value", "verdict"), [(c, make, v, verdict) for c, make, row in TABLE for v, verdict in row.items()])
def test_the_limit_itself_is_kept_and_one_unit_beyond_it_is_not(check, make, value, verdict):
    bundle = make(value).bundle()
    found = next(c for c in judge(bundle.plan, bundle).checks if c.id == check)
    assert found.verdict is verdict, found.reason.en
    assert told_on_its_side(found), found


@pytest.mark.parametrize(("off", "verdict"), LATER.items())
def test_a_steady_series_may_rise_by_exactly_the_limit_of_its_slope(off, verdict):
    bundle = load(ttft=rising(2000 * MS, 50 * MS, off)).bundle()
    assert next(c for c in judge(bundle.plan, bundle).checks if c.id == "g4.steady_ttft_p50").verdict is verdict


def test_every_number_that_a_check_of_g4_is_held_against_has_its_row():
    rows = {re.sub(r"(counter|injection)_\w+", r"\1_{name}", check) for check, _, _ in TABLE}
    assert numeric_limits("G4", plan_of()) <= rows
