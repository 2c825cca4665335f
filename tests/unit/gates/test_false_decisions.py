"""A short version of docs/false-decisions.md: the decision rules keep their word at the limit, and let a good product through."""

from decimal import Decimal

import pytest

from gates.model import Verdict
from gates.odds.alarms import with_fitting_limits
from gates.odds.chances import chances
from gates.odds.effects import Noise, expected_effects
from gates.odds.false_decisions import bootstrap_share, check_needs, check_shares
from gates.odds.planner import with_pairs
from gates.plan import parse_plan

PLAN = parse_plan()
NOISES = [0.01, 0.02, 0.03]
TRIALS = 600
FEW = 40  # requests a run: enough to show the rule, and quick


def passes(rule, pairs, drop, noise, **more):
    return check_shares(with_pairs(PLAN, pairs, rule=rule), drop, Noise(noise), trials=TRIALS, seed=11, requests=FEW, **more)[Verdict.PASS]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("rule", "most"), [("interval", 0.06), ("guarded", 0.035)])
def test_a_true_drop_at_the_limit_rarely_passes_a_rule_that_promises_so_even_when_it_is_extended(noise, rule, most):
    # promised are 5 % and 2.3 %; the seed is fixed, so this is no throw of the dice
    assert passes(rule, 4, 0.25, noise, rule_alone=True) <= most


def test_shared_risk_passes_about_every_second_product_at_the_limit():
    assert 0.4 < passes("simple", 2, 0.25, 0.02, rule_alone=True) < 0.6


@pytest.mark.parametrize("noise", NOISES)
def test_the_planners_pairs_let_a_true_drop_of_thirty_percent_through(noise):
    found = check_needs(with_pairs(PLAN, 4, rule="interval"), 0.30, Noise(noise), 0.9, trials=200, seed=11)
    assert found is not None
    again = check_shares(with_pairs(PLAN, found[0], rule="interval"), 0.30, Noise(noise), trials=300, seed=12)[Verdict.PASS]
    assert again >= 0.9 - 0.035  # two standard errors of 300 trials


def test_an_interval_over_requests_would_pass_the_limit_many_times_too_often():
    assert bootstrap_share(0.25, Noise(0.02), trials=200, seed=11) > 0.15


def test_the_whole_gate_never_passes_the_limit_more_often_than_one_check():
    plan = with_pairs(PLAN, 4, rule="interval")
    effects = expected_effects(plan, drop=Decimal("0.25"), gain=Decimal("0.345"))
    for noise in NOISES:
        assert chances(plan, effects, Noise(noise), trials=200).of(Verdict.PASS) <= 0.03


def test_the_whole_gate_passes_thirty_percent_once_its_validity_limits_fit_the_noise():
    noise, eight = Noise(0.02), with_pairs(PLAN, 8, rule="interval")
    effects = expected_effects(eight, drop=Decimal("0.30"), gain=Decimal("0.345"))
    as_planned, fitting = (chances(plan, effects, noise, trials=250, seed=99) for plan in (eight, with_fitting_limits(eight, noise)))
    assert fitting.of(Verdict.PASS) >= 0.9
    assert as_planned.of(Verdict.INVALID) > 0.08  # the placebo, one run against one run with 5 %: no number of pairs helps
