"""A short version of docs/false-decisions.md: the decision rules keep their word at the limit, and let a good product through."""

from decimal import Decimal

import pytest

from gates.model import Verdict
from gates.odds.alarms import with_fitting_limits
from gates.odds.chances import chances
from gates.odds.effects import Noise, expected_effects
from gates.odds.false_decisions import alarm_shares, bootstrap_share, check_needs, check_shares
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


def planned(pairs, controls, prompts):
    return with_pairs(PLAN, pairs, rule="interval", controls=controls, prompts=prompts)


# What the planner finds at each noise (docs/false-decisions.md); the search itself is tested in test_odds.
RUNS = {0.01: planned(4, 2, "shared"), 0.02: planned(8, 4, "per_block"), 0.03: planned(20, 10, "per_block")}


@pytest.mark.parametrize("noise", NOISES)
def test_with_the_planners_runs_the_whole_gate_passes_thirty_percent_under_limits_of_five_and_not_the_limit_itself(noise):
    plan = RUNS[noise]
    good, at_the_limit = (expected_effects(plan, drop=Decimal(drop), gain=Decimal("0.345")) for drop in ("0.30", "0.25"))
    assert chances(plan, good, Noise(noise), trials=300, seed=99).of(Verdict.PASS) >= 0.9
    assert chances(plan, at_the_limit, Noise(noise), trials=100, seed=99).of(Verdict.PASS) <= 0.03


@pytest.mark.parametrize("noise", NOISES)
def test_a_warm_cache_and_a_placebo_that_gains_are_still_caught_nearly_always(noise):
    assert alarm_shares(RUNS[noise], Noise(noise), trials=60, seed=11, warm=0.20)["replay"] == 1
    assert alarm_shares(RUNS[noise], Noise(noise), trials=60, seed=11, warm=0.08)["replay"] >= 0.95
    assert alarm_shares(RUNS[noise], Noise(noise), trials=60, seed=11, placebo=0.08)["placebo"] >= 0.95


def test_baselines_that_vary_too_much_are_caught_more_often_by_more_runs():
    found = [alarm_shares(planned(n, 1, "shared"), Noise(0.06), trials=100, seed=11)["baselines_agree"] for n in (4, 8, 20)]
    assert found == sorted(found)
    assert found[0] > 0.75
    assert found[-1] == 1


def test_a_plan_of_one_control_and_one_prompt_set_alarms_by_chance_until_its_limits_fit_the_noise():
    noise, eight = Noise(0.02), with_pairs(PLAN, 8, rule="interval")
    effects = expected_effects(eight, drop=Decimal("0.30"), gain=Decimal("0.345"))
    as_planned, fitting = (chances(plan, effects, noise, trials=150, seed=99) for plan in (eight, with_fitting_limits(eight, noise)))
    assert fitting.of(Verdict.PASS) >= 0.88
    assert as_planned.of(Verdict.INVALID) > 0.08  # the placebo, one run against one run with 5 %
