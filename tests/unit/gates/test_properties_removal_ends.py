"""No harm to its evidence makes an arrival or a soak pass that did not, one for each fault and each breach."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.gates import breaches, breaches_g4
from tests.unit.gates.damage import FACTORS, HOWS, NOT_GOOD, damaged, read_verdict, verdict

BOUNDED = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
A_FEW = settings(BOUNDED, max_examples=25)  # a soak takes long to judge
arrival, soak = functools.cache(breaches.g1), functools.cache(breaches_g4.g4)


@pytest.mark.parametrize("fault", breaches.RACK)
def test_the_arrivals_that_are_harmed_here_do_not_pass(fault: str) -> None:
    assert read_verdict(arrival(fault)) in NOT_GOOD


@pytest.mark.parametrize("name", breaches_g4.G4)
def test_the_soaks_that_are_harmed_here_do_not_pass(name: str) -> None:
    assert read_verdict(soak(name)) in NOT_GOOD


def test_the_soaks_that_nothing_is_wrong_with_pass() -> None:
    assert read_verdict(breaches_g4.load()) == "pass"
    assert read_verdict(breaches_g4.injection()) == "pass"


@given(data=st.data(), fault=st.sampled_from(breaches.RACK), how=st.sampled_from(HOWS), where=st.floats(0, 0.999), up=st.booleans())
@BOUNDED
def test_no_harm_makes_an_arrival_pass_that_did_not(data, fault: str, how: str, where: float, up: bool) -> None:
    evidence = arrival(fault)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, 1000, up=up)) in NOT_GOOD


@given(
    data=st.data(),
    name=st.sampled_from(sorted(breaches_g4.G4)),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@A_FEW
def test_no_harm_makes_a_soak_pass_that_did_not(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = soak(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD
