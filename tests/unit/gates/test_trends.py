"""Steady, drifting, leaking, burning: the pure rules of a series, and the checks of the soak that use them."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from statistics import median

import pytest

from gates.judge import judge
from gates.rules.estimates import beside
from gates.rules.levels import worst_stretch
from gates.rules.trends import spread_and_slope, steady_state, theil_sen, worst_burn
from tests.bundles import Truth, g4_evidence, soak_plan

F = Fraction


def checks(document: dict) -> dict[str, dict]:
    return {c["id"]: c for c in document["checks"]}


def steady(values: list[str | None], spread: str = "0.20", slope: str = "0.10", within: int = 25):
    known = [None if v is None else F(v) for v in values]
    return steady_state(known, rounds=5, within=within, spread_max=F(spread), slope_max=F(slope))


def test_the_vector_of_the_published_log_is_steady_with_its_range_and_slope():
    found = steady(["228.90", "240.21", "240.60", "240.71", "240.71"])
    assert found is not None
    assert found.at == 4
    assert float(found.spread) == pytest.approx(11.81 / 238.226, abs=1e-9)
    assert float(found.slope) == pytest.approx(0.0405, abs=5e-5)


def test_both_limits_are_inclusive_and_exact():
    assert steady(["90", "110", "100", "100", "100"]) is not None  # the range is exactly 20 % of the mean
    assert steady(["90", "110.0000001", "100", "100", "100"]) is None
    assert spread_and_slope([F(95), F("97.5"), F(100), F("102.5"), F(105)]) == (F(1, 10), F(1, 10))
    assert steady(["95", "97.5", "100", "102.5", "105"]) is not None
    assert steady(["94.9", "97.5", "100", "102.5", "105"]) is None


def test_a_missing_round_breaks_the_row_and_what_comes_too_late_is_not_steady():
    assert steady(["100", "100", None, "100", "100", "100", "100"]) is None
    assert steady(["100", "100", None, "100", "100", "100", "100", "100"]).at == 7
    assert steady(["1", "9"] * 12 + ["100"] * 5, within=25) is None
    assert steady([]) is None


def test_the_slope_is_that_of_all_pairs():
    rng = random.Random(3)
    points = [(F(n), F(2.0 * n + rng.gauss(0, 30))) for n in range(60)]
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1 :])
    found = theil_sen(points, 0.95)
    assert found is not None
    assert found[0] == median(slopes)
    assert found[1] in slopes


@pytest.mark.parametrize("values", [[7] * 40, [3 * n for n in range(40)], [n // 3 for n in range(40)], [F(n % 5, 7) + n for n in range(40)]])
def test_slopes_that_are_equal_or_nearly_so_are_ranked_exactly(values):
    points = [(10**15 + 3 * n, 10**14 + v + F(n % 7 == 3, 10**9)) for n, v in enumerate(values)]
    slopes = sorted((b[1] - a[1]) / F(b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1 :])
    found = theil_sen(points, 0.95)
    assert found is not None
    assert found[0] == median(slopes)
    assert found[1] in slopes
    assert found[1] <= found[0]


@pytest.mark.parametrize("upwards", [True, False])
def test_a_change_of_level_is_exact_to_half_a_ns_of_half_a_minute(upwards):
    calm, worse = [F(3 * 10**10)] * 12, [F(3 * 10**10) * F(105, 100) + F(1, 2)] * 12
    found = worst_stretch(calm + worse if upwards else worse + calm, upwards=upwards, least=6, p_max=0.001, over=F(5, 100))
    assert found is not None
    assert found.size - F(5, 100) == F(1, 6 * 10**10)


@pytest.mark.parametrize(("off", "shown"), [(F(0), "0.0500000000"), (F(1, 10**14), "0.05000000000001"), (-F(1, 10**14), "0.04999999999999")])
def test_a_figure_is_printed_on_its_own_side_of_the_limit(off, shown):
    assert format(beside(F(5, 100) + off, Decimal("0.05")), "f") == shown


def burn(failed: list[int], requests: int = 100, *, bins: int = 12, fewest: int = 3, budget: int = 20):
    return worst_burn([requests] * len(failed), failed, bins=bins, short=1, budget=F(budget), fewest=fewest)


def test_a_burst_uses_its_share_of_the_budget_where_it_ends():
    found = burn([0] * 20 + [2, 2, 2] + [0] * 20)
    assert found is not None
    assert (found.share, found.at, found.failed) == (F(6, 20), 22, 6)


def test_failures_that_are_few_or_long_over_are_no_burn():
    assert burn([0, 1, 0, 1, 0, 0]) is None
    assert burn([5] + [0] * 40).at == 0  # while it lasts, and no longer
    assert worst_burn([], [], bins=3, short=1, budget=F(1), fewest=1) is None
    assert burn([9] * 5, budget=0) is None


def test_the_same_failures_spread_out_use_less_of_the_budget_than_at_once():
    spread, at_once = burn([1] * 24), burn([0] * 12 + [24] + [0] * 11)
    assert spread is not None
    assert at_once is not None
    assert spread.share < at_once.share == F(24, 20)


def test_an_hour_of_failures_within_the_error_rate_is_shown_and_blocks_only_where_the_plan_says_so():
    truth = Truth(fails=lambda n: 1000 <= n < 1004)
    shown = judge(g4_evidence(truth, soak_plan({"g4": {"error_rate_max": "0.01"}})).bundle())
    limits = {"error_rate_max": "0.01", "error_budget": {"share_max": "0.05", "blocking": True}}
    blocked = judge(g4_evidence(truth, soak_plan({"g4": limits})).bundle())
    assert (shown["verdict"], checks(shown)["g4.error_budget_short"]["severity"]) == ("pass", "advisory")
    assert checks(shown)["g4.error_rate"]["verdict"] == "pass"
    found = checks(blocked)["g4.error_budget_short"]
    assert (blocked["verdict"], found["verdict"], found["severity"]) == ("fail", "fail", "blocking")
    assert "of the failures that the whole soak may have" in found["reason"]["en"]
    assert Decimal(found["margin"]) < 0


def test_a_steady_soak_is_steady_early_and_still_at_the_end_and_a_drifting_one_is_not():
    calm = checks(judge(g4_evidence(plan=soak_plan()).bundle()))
    moving = checks(judge(g4_evidence(Truth(drift=lambda x: 1 + 3 * x * x), soak_plan()).bundle()))
    for name in ("ttft_p50", "throughput"):
        assert calm[f"g4.steady_{name}"]["verdict"] == "pass"
        assert moving[f"g4.steady_{name}"]["verdict"] == "fail"
        assert moving[f"g4.steady_{name}"]["severity"] == "advisory"
    assert "first at hour" in calm["g4.steady_ttft_p50"]["reason"]["en"]


def test_open_files_that_grow_without_end_are_shown():
    def leaking(e) -> None:
        e.lines("soak", "telemetry.jsonl", lambda rows: [{**r, "engine": {**r["engine"], "fds": 40 + n // 4}} for n, r in enumerate(rows)])

    evidence = g4_evidence(plan=soak_plan())
    assert checks(judge(evidence.bundle()))["g4.leak_fds"]["verdict"] == "pass"
    leaking(evidence)
    found = checks(judge(evidence.bundle()))
    assert (found["g4.leak_fds"]["verdict"], found["g4.leak_fds"]["severity"]) == ("fail", "advisory")
    assert found["g4.leak_threads"]["verdict"] == "pass"


def test_hours_in_which_only_the_slowest_requests_get_slower_are_shown_and_decide_nothing():
    def slower(rows: list[dict]) -> list[dict]:
        late = len(rows) // 2
        return [{**r, "first_text_ns": r["end_ns"]} if r["phase"] == "soak" and n > late and r["prompt"] % 20 == 0 else r for n, r in enumerate(rows)]

    document = judge(g4_evidence(plan=soak_plan()).lines("soak", "records.jsonl", slower).bundle())
    found = checks(document)
    assert (found["g4.drift_ttft_p99"]["verdict"], found["g4.drift_ttft_p99"]["severity"]) == ("fail", "advisory")
    assert (found["g4.drift_ttft_p50"]["verdict"], document["verdict"]) == ("pass", "pass")
    assert checks(judge(g4_evidence(plan=soak_plan()).bundle()))["g4.drift_ttft_p99"]["verdict"] == "pass"
