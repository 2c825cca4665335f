"""A deeper fall is never a better verdict: windows that lose their requests because these take too long are slow windows, and no gaps."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.judge import judge
from tests.unit.gates.even_soak import WINDOWS, Soak

RANK = {"fail": 0, "inconclusive": 1, "pass": 2}
PLACES = {"at the end": range(WINDOWS - 1, WINDOWS), "for half the soak": range(5, WINDOWS - 1), "to the end": range(6, WINDOWS)}
THIN = {"g4": {"coverage_min": "0.9", "change_point": {"windows_min": 4}}}  # a window of twelve may be left out

FEWEST = 3  # of fewer none succeeds for longer than the plan's gap: an outage, whose cause may be the site's, and so neither pass nor fail


@functools.cache
def judged(where: str, requests: int) -> dict[str, Any]:
    """Judge a soak in whose windows at a place so many requests end as are asked for, instead of 20."""
    return judge(Soak(THIN).load(requests=lambda w: requests if w in PLACES[where] else 20).samples().evidence.bundle())


@given(where=st.sampled_from(sorted(PLACES)), two=st.tuples(st.integers(FEWEST, 20), st.integers(FEWEST, 20)))
@settings(max_examples=8, deadline=None)
def test_fewer_requests_in_the_same_time_are_no_better_verdict(where: str, two: tuple[int, int]) -> None:
    fewer, more = sorted(two)
    assert RANK[judged(where, fewer)["verdict"]] <= RANK[judged(where, more)["verdict"]]


@pytest.mark.parametrize("where", PLACES)
def test_a_fall_below_the_fewest_requests_of_a_window_is_told_as_one_above_it(where: str) -> None:
    verdicts = [judged(where, requests)["verdict"] for requests in (20, 10, 9, FEWEST)]
    assert verdicts[0] == "pass"
    assert all(RANK[b] <= RANK[a] for a, b in itertools.pairwise(verdicts)), verdicts
    assert RANK[verdicts[1]] < RANK["pass"]
    assert judged(where, 1)["verdict"] == "inconclusive"


def test_a_slow_window_is_told_with_its_hour_and_by_how_much() -> None:
    told = next(c for c in judged("at the end", 5)["checks"] if c["id"] == "g4.drift_throughput")
    assert told["verdict"] == "inconclusive"
    assert "throughput is worse by 300.00 % from hour 11.0 on" in told["reason"]["en"]
