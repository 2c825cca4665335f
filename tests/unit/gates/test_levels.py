"""Stretches of a soak that are worse than the rest of it: found wherever they lie, exact, and never better for being worse."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.judge import judge
from gates.rules.beside_best import beside_best
from gates.rules.levels import bad_start, late_fall, worst_stretch
from tests.bundles import Truth, g4_evidence, soak_plan

LEAST, P_MAX, LIMIT = 6, 0.001, Fraction(5, 100)
NOT_GOOD = ("fail", "inconclusive")


def noisy(seed: int, windows: int = 72) -> list[int]:
    rng = random.Random(seed)
    return [int(10**9 * (1 + rng.gauss(0, 0.01))) for _ in range(windows)]


def worse(values: list[int], low: int, high: int, share: float, *, upwards: bool = True) -> list[int]:
    return [int(v * (1 + share) if upwards else v / (1 + share)) if low <= n < high else v for n, v in enumerate(values)]


def found(values: list[int], *, upwards: bool = True):
    return worst_stretch(values, upwards=upwards, least=LEAST, p_max=P_MAX, over=LIMIT)


def standing(values: list[int], *, upwards: bool = True) -> str:
    """Say what the check of levels would: fail, inconclusive or pass."""
    ask = {"upwards": upwards, "least": LEAST, "p_max": P_MAX, "over": LIMIT}
    stretch = worst_stretch(values, **ask)
    if stretch is not None and stretch.size > LIMIT:
        return "fail"
    doubts = (find(values, **ask) for find in (late_fall, bad_start, beside_best))
    return "inconclusive" if any(d is not None and d.size > LIMIT for d in doubts) else "pass"


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize(("low", "high", "verdict"), [(7, 39, "fail"), (30, 36, "fail"), (66, 72, "fail"), (40, 72, "fail"), (0, 32, "inconclusive")])
def test_ten_times_worse_for_hours_is_never_a_pass_wherever_they_lie(low, high, verdict, upwards):
    values = worse(noisy(1), low, high, 9, upwards=upwards)
    assert standing(values, upwards=upwards) == verdict
    if verdict == "fail":
        stretch = found(values, upwards=upwards)
        assert abs(stretch.at - low) <= 1  # of six windows among 72 one more ranks no lower than chance moves it
        assert abs(stretch.end - high) <= 1


@pytest.mark.parametrize(("last", "verdict"), [(1, "inconclusive"), (2, "inconclusive"), (3, "inconclusive"), (4, "inconclusive"), (5, "fail")])
def test_a_collapse_in_the_last_hours_is_no_pass_however_few_they_are(last, verdict):
    """Five bad windows and the one before them are six that rank above the rest."""
    assert standing(worse(noisy(2), 72 - last, 72, 0.2)) == verdict
    assert standing(worse(noisy(2), 72 - last, 72, 9)) == verdict


@pytest.mark.parametrize("seed", range(5))
def test_what_scatters_about_one_level_has_no_stretch_beyond_the_limit(seed):
    assert standing(noisy(seed)) == standing(noisy(seed), upwards=False) == "pass"


def test_better_hours_are_no_worse_ones():
    assert standing(worse(noisy(3), 30, 72, 0.5), upwards=False) == "inconclusive"  # worse at first, and better from hour 30 on
    assert standing(worse(noisy(3), 30, 50, 0.5), upwards=False) == "inconclusive"  # twenty such hours: nothing tells which is its level
    assert standing(worse(noisy(3), 30, 36, 0.1), upwards=False) == "pass"


def test_the_size_of_a_plateau_is_exact_to_half_a_nanosecond():
    level = 3 * 10**10
    values = [Fraction(level)] * 20 + [Fraction(level) * Fraction(105, 100) + Fraction(1, 2)] * 10 + [Fraction(level)] * 20
    assert found(values).size - LIMIT == Fraction(1, 6 * 10**10)


def test_a_long_series_is_searched_on_a_grid_and_a_plateau_of_it_is_found():
    stretch = found(worse(noisy(4, 600), 200, 400, 0.2))
    assert abs(stretch.at - 200) <= 5
    assert abs(stretch.end - 400) <= 5


@given(data=st.data(), seed=st.integers(0, 50), low=st.integers(1, 60), length=st.integers(1, 40), share=st.floats(0.02, 0.3))
@settings(max_examples=25, deadline=None)
def test_making_a_worse_window_worse_still_never_improves_the_verdict(data, seed, low, length, share):
    values = worse(noisy(seed, 48), min(low, 42), min(low, 42) + length, share)
    stretch = found(values) or late_fall(values, upwards=True, least=LEAST, p_max=P_MAX, over=LIMIT)
    before = standing(values)
    if stretch is None:
        return
    inside = data.draw(st.integers(stretch.at, stretch.end - 1))
    values[inside] *= data.draw(st.integers(2, 10))
    order = ("fail", "inconclusive", "pass")
    assert order.index(standing(values)) <= order.index(before)


def bad_from(low: float, high: float) -> str:
    document = judge(g4_evidence(Truth(drift=lambda x: 1.3 if low <= x < high else 1.0), soak_plan()).bundle())
    return next(c["verdict"] for c in document["checks"] if c["id"] == "g4.drift_ttft_p50")


def test_a_soak_with_a_bad_stretch_that_ends_does_not_pass():
    assert bad_from(0.25, 0.60) == "fail"
    assert bad_from(0.90, 1.01) == "inconclusive"
