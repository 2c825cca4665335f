"""No harm to its evidence makes a baseline or a main gate pass that did not: fail, invalid, inconclusive and conditional ones, one for each claim."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.gates import breaches
from tests.unit.gates.damage import FACTORS, HOWS, NOT_GOOD, damaged, read_verdict, verdict

BOUNDED = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SOME = settings(BOUNDED, max_examples=40)
MAIN, BASE = (*breaches.G3, *breaches.TRUTHS), (*breaches.G2, *breaches.G2_TRUTHS)
main_gate, baseline, conditional = functools.cache(breaches.g3), functools.cache(breaches.g2), functools.cache(breaches.conditional)


@pytest.mark.parametrize("name", MAIN)
def test_the_main_gates_that_are_harmed_here_do_not_pass(name: str) -> None:
    assert read_verdict(main_gate(name)) in NOT_GOOD


@pytest.mark.parametrize("name", BASE)
def test_the_baselines_that_are_harmed_here_do_not_pass(name: str) -> None:
    assert read_verdict(baseline(name)) in NOT_GOOD


@pytest.mark.parametrize("name", breaches.CONDITIONAL)
def test_the_conditional_main_gates_that_are_harmed_here_are_conditional(name: str) -> None:
    assert read_verdict(conditional(name)) == "conditional"


def test_the_gates_that_nothing_is_wrong_with_pass() -> None:
    assert read_verdict(breaches.good()) == "pass"
    assert read_verdict(breaches.good_g2()) == "pass"


@given(
    data=st.data(),
    name=st.sampled_from(MAIN),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@BOUNDED
def test_no_harm_makes_a_main_gate_pass_that_did_not(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = main_gate(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD


@given(
    data=st.data(),
    name=st.sampled_from(BASE),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@SOME
def test_no_harm_makes_a_baseline_pass_that_did_not(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = baseline(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD


@given(
    data=st.data(),
    name=st.sampled_from(sorted(breaches.CONDITIONAL)),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@SOME
def test_no_harm_makes_a_main_gate_pass_that_was_conditional(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = conditional(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) != "pass"
