"""A stretch of a soak that is worse than another by itself: however short, and whatever the rest is made to look like."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gates.judge import judge
from gates.rules.beside_best import beside_best
from tests.unit.gates.even_soak import S, Soak
from tests.unit.gates.test_levels import LEAST, LIMIT, P_MAX, noisy, standing, worse


def found(values: list[int], *, upwards: bool = True):
    return beside_best(values, upwards=upwards, least=LEAST, p_max=P_MAX, over=LIMIT)


def no_pass(values: list[int]) -> bool:
    """Tell whether the check of levels passes nothing; the costlier of its rules are asked only where the cheap one has no doubt."""
    return found(values) is not None or standing(values) != "pass"


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize(("low", "high"), [(30, 31), (30, 33), (1, 2), (0, 3), (40, 45), (69, 71)])
def test_a_plateau_of_fewer_windows_than_the_plan_asks_for_is_no_pass_wherever_it_lies(low, high, upwards):
    values = worse(noisy(1), low, high, 0.25, upwards=upwards)
    assert standing(values, upwards=upwards) in ("inconclusive", "fail")
    stretch = found(values, upwards=upwards)
    assert low <= stretch.at < high  # lengths are tried in steps of a third: the end may lie a little behind the plateau's
    assert stretch.end - high <= (high - low) * 2 // 3
    assert stretch.reference_end - stretch.reference_at >= LEAST


@given(
    seed=st.integers(0, 50),
    length=st.integers(1, 12),
    place=st.integers(0, 60),
    kept=st.integers(0, 48),
    worsened=st.sets(st.integers(0, 71)),
    share=st.floats(0.01, 3),
)
@settings(max_examples=40, deadline=None)
def test_no_window_can_be_made_worse_to_a_pass_while_a_good_day_stands(seed, length, place, kept, worsened, share):
    """A plateau half again as slow, of any length. 24 windows stay as they were; all others, and the plateau too, may be made worse."""
    assume(place + length <= kept or place >= kept + 24)
    values = worse(noisy(seed), place, place + length, 0.5)
    assert no_pass(values)
    for n in worsened:
        if not kept <= n < kept + 24:
            values[n] = int(values[n] * (1 + share))
    assert no_pass(values)


@given(seed=st.integers(0, 50), length=st.integers(1, 40), place=st.integers(0, 71), times=st.floats(1, 20), share=st.floats(0.3, 1))
@settings(max_examples=40, deadline=None)
def test_no_single_window_can_be_made_worse_to_a_pass(seed, length, place, times, share):
    values = worse(noisy(seed), 20, 20 + length, share)
    assert no_pass(values)
    values[place] = int(values[place] * times)
    assert no_pass(values)


@given(data=st.data(), seed=st.integers(0, 50), length=st.integers(1, 40), share=st.floats(0.05, 0.5))
@settings(max_examples=40, deadline=None)
def test_what_a_reference_proved_stands_whatever_gets_worse_outside_it(data, seed, length, share):
    """By the rule itself, at any share and scatter: the windows of the two decide, and no others."""
    values = worse(noisy(seed), 20, 20 + length, share)
    stretch = found(values)
    if stretch is None:
        return
    others = [n for n in range(len(values)) if not stretch.reference_at <= n < stretch.reference_end]
    for n in data.draw(st.sets(st.sampled_from(others))):
        values[n] = int(values[n] * data.draw(st.floats(1, 10)))
    assert found(values) is not None


def test_windows_that_happen_to_be_alike_promise_nothing():
    """Of twenty requests in a window one more or less is five percent: no change of level, though the others count the same."""
    counts = [20] * 30 + [19] + [20] * 41
    assert beside_best(counts, upwards=False, least=LEAST, p_max=P_MAX, over=LIMIT) is None
    assert beside_best([*counts[:30], 15, *counts[31:]], upwards=False, least=LEAST, p_max=P_MAX, over=LIMIT).size == Fraction(20, 15) - 1


def test_a_soak_that_is_too_short_for_a_reference_is_held_against_nothing():
    assert found([100] * 5 + [200]) is None
    assert found([100] * LEAST) is None


def test_a_soak_with_one_bad_hour_does_not_pass_and_says_what_it_was_held_against():
    soak = Soak().load(ttft=lambda w: 3 * S if w == 5 else 2 * S).samples()
    check = next(c for c in judge(soak.evidence.bundle())["checks"] if c["id"] == "g4.drift_ttft_p50")
    assert check["verdict"] == "inconclusive"
    assert "from hour 5.0 to hour 6.0" in check["reason"]["en"]
    assert "held against hour 6.0 to hour 12.0" in check["reason"]["en"]
    assert check["change"]["zh-CN"].startswith("自始至终")


@pytest.mark.parametrize(("window", "verdict"), [(0, "pass"), (1, "inconclusive"), (5, "inconclusive")])
def test_the_window_in_which_the_load_begins_lacks_what_was_under_way_and_is_no_level_of_throughput(window, verdict):
    soak = Soak().load(requests=lambda w: 17 if w == window else 20).samples()
    assert next(c["verdict"] for c in judge(soak.evidence.bundle())["checks"] if c["id"] == "g4.drift_throughput") == verdict
