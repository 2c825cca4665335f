"""Estimates: exact medians, nearest-rank percentiles, the full window, and throughput that does not depend on where the window cuts."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.readers.run_pack import read_pack
from gates.rules.estimates import beside, full_window, mean_in_flight, median, output_rate, percent, percentile, tier_stats, to_decimal
from gates.transitions import TABLE, Event, IllegalTransition, RunStatus, allowed, apply
from tests.bundles import Truth, g2_evidence, small_plan


@pytest.fixture(scope="module")
def requests():
    evidence = g2_evidence(Truth(noise=0.05), small_plan({"workload": {"requests_per_run": {"min": 200, "per_concurrency": 10}}}))
    return read_pack(evidence.bundle(), "run-1", "gpu01", ("records.jsonl",)).of("measure", 8)


def test_the_median_is_the_middle_or_the_mean_of_the_middle_two():
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 3, 2]) == Fraction(5, 2)
    with pytest.raises(ValueError, match="no median"):
        median([])


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=60))
def test_a_percentile_is_a_measured_value_that_enough_values_do_not_exceed(values):
    found = percentile(values, Fraction(99, 100))
    assert found in values
    assert sum(v <= found for v in values) * 100 >= 99 * len(values)


def test_in_the_full_window_the_loop_is_full(requests):
    window = full_window(requests, 8)
    assert float(mean_in_flight(requests, window)) == pytest.approx(8, rel=0.01)
    assert full_window(requests[:8], 8) is None
    assert full_window([], 8) is None


def test_throughput_is_what_little_says_and_does_not_hang_on_the_window(requests):
    window = full_window(requests, 8)
    rate = float(output_rate(requests, window))
    assert rate == pytest.approx(8 * 64 / (17 * 8 * 1.1696 / 1000), rel=0.01)
    shorter = type(window)(window.start_ns + window.length_ns // 5, window.end_ns - window.length_ns // 7)
    assert float(output_rate(requests, shorter)) == pytest.approx(rate, rel=0.01)


def test_nothing_measured_gives_no_statistics(requests):
    assert tier_stats([], 8) is None
    assert tier_stats(requests[:5], 8) is None
    stats = tier_stats(requests, 8)
    assert (stats.requests, stats.failed) == (len(requests), 0)


def test_a_percentage_shows_as_many_digits_as_it_takes_to_stand_on_the_right_side():
    assert percent(Decimal("0.2596"), Decimal("0.25")) == "25.96 %"
    assert percent(Decimal("0.24999999"), Decimal("0.25")) == "24.999999 %"
    assert percent(Decimal("0.25"), Decimal("0.25")) == "25.00 %"
    assert to_decimal(Fraction(1, 3), 3) == Decimal("0.333")
    assert to_decimal(Fraction(5, 2), 0) == Decimal(2)


def test_the_transition_table_is_whole_and_ends_only_by_a_person():
    for status in RunStatus:
        for event in Event:
            found = apply(status, event)
            assert found == TABLE.get((status, event)) or isinstance(found, IllegalTransition)
    assert allowed(RunStatus.FINISHED) == (Event.EXTEND,)
    assert allowed(RunStatus.CANCELED) == ()
    assert allowed(RunStatus.ERROR) == (Event.RETRY, Event.CANCEL)
    assert apply(RunStatus.RUNNING, Event.LOSE_CONTACT) is RunStatus.LOST_CONTACT
    refused = apply(RunStatus.FINISHED, Event.START)
    assert isinstance(refused, IllegalTransition)
    assert "nothing was changed" in refused.text.en
    with pytest.raises(TypeError):
        TABLE[(RunStatus.FINISHED, Event.START)] = RunStatus.RUNNING


def test_every_running_attempt_can_be_canceled():
    for status in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.LOST_CONTACT, RunStatus.ERROR):
        assert apply(status, Event.CANCEL) is RunStatus.CANCELED


@pytest.mark.parametrize("value", ["0", "-0", "1E-400", "1E-9", "-1E-9", "1E+9", "1E+25", "1E+399", "-1E+399", "9.99E+999999", "NaN", "-Infinity"])
def test_a_ratio_is_printed_whatever_it_is(value):
    for number in (Decimal(value), *([Fraction(Decimal(value))] if -500 < Decimal(value).adjusted() < 500 and Decimal(value).is_finite() else [])):
        assert percent(number).endswith(" %")
        assert len(percent(number, Decimal("0.25"), Decimal("0"))) < 40
    assert percent(Decimal("1E+25")) == "1.00E+27 %"


@given(st.fractions(), st.decimals(allow_nan=False, allow_infinity=False, min_value=-10, max_value=10, places=4), st.integers(1, 60))
def test_a_figure_beside_its_limit_stays_on_its_own_side_however_near_or_far(value, limit, digits):
    for exact in (value, Fraction(limit) + Fraction(1, 10**digits), Fraction(limit) - Fraction(1, 10**digits), value * 10**digits):
        shown = beside(exact, limit)
        assert ((shown > limit), (shown < limit)) == ((exact > limit), (exact < limit))
