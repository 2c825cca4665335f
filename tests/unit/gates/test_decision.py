"""Estimates meet limits exactly, by three rules, and the printed value is the compared one."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.model import Because, Verdict
from gates.plan import parse_plan
from gates.rules.decision import Effect, compare, flips, interval, risk
from gates.rules.estimates import percent

LIMIT = Decimal("0.25")
SIMPLE = parse_plan().decision
FOUR = {"decision": {"pairs": 4}, "arms": {"order": ["baseline", "candidate", "candidate", "baseline"] * 2}}


def rule(name, **more):
    return parse_plan({**FOUR, "decision": {"pairs": 4, "rule": name, **more}}).decision


def effect(*drops, drop=True):
    return Effect(tuple((Fraction(1000), Fraction(1000) * (1 - Fraction(d) if drop else 1 + Fraction(d))) for d in drops), drop)


def test_the_simple_rule_with_several_pairs_is_a_geometric_mean_held_exactly():
    assert effect("0.2", "0.3").reaches(LIMIT) is (Fraction(8, 10) * Fraction(7, 10) <= Fraction(3, 4) ** 2)
    assert effect("0.25", "0.25", "0.25").reaches(LIMIT)
    assert not effect("0.25", "0.25", "0.2499999999999").reaches(LIMIT)


def test_the_printed_value_stands_on_the_side_where_the_comparison_put_it():
    almost = Effect(((Fraction(10**18), Fraction(75 * 10**16 + 1)),), drop=True)
    assert not almost.reaches(LIMIT)
    assert almost.value(LIMIT) < LIMIT
    assert percent(almost.value(LIMIT), LIMIT).startswith("24.9999")


@given(
    st.lists(st.tuples(st.integers(1, 10**13), st.integers(1, 10**13)), min_size=1, max_size=5),
    st.sampled_from(["0.25", "0.29", "0.4", "0.001"]),
    st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_value_and_comparison_never_contradict_each_other(pairs, limit, drop):
    found, bound = Effect(tuple((Fraction(a), Fraction(b)) for a, b in pairs), drop), Decimal(limit)
    value = found.value(bound)
    assert (value >= bound) is found.reaches(bound)
    assert (value > bound) is found.exceeds(bound)
    expected = math.exp(math.fsum(math.log(b) - math.log(a) for a, b in pairs) / len(pairs))
    assert float(value) == pytest.approx(1 - expected if drop else expected - 1, rel=1e-6, abs=1e-6)


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(0, 10**9))
@settings(max_examples=100, deadline=None)
def test_a_slower_candidate_never_turns_a_miss_into_a_pass(base, new, more):
    order = [Verdict.PASS, Verdict.FAIL]
    faster = compare(Effect(((Fraction(base), Fraction(new)),), drop=True), LIMIT, SIMPLE).verdict
    slower = compare(Effect(((Fraction(base), Fraction(new + more)),), drop=True), LIMIT, SIMPLE).verdict
    assert order.index(slower) >= order.index(faster)


def test_two_pairs_are_said_to_be_too_few_for_an_interval():
    shown = interval(effect("0.3", "0.3"), SIMPLE)
    assert (shown.low, shown.high) == (None, None)
    assert "too few" in shown.note.en


def test_the_interval_is_the_students_t_bound_on_log_ratios():
    drops = ("0.30", "0.31", "0.29", "0.32")
    logs = [math.log(1 - float(d)) for d in drops]
    mean = sum(logs) / 4
    error = math.sqrt(sum((x - mean) ** 2 for x in logs) / 3 / 4)
    shown = interval(effect(*drops), rule("interval"))
    t = 2.353363434801823  # one-sided 95 %, 3 degrees of freedom, from tables
    assert float(shown.low) == pytest.approx(1 - math.exp(mean + t * error), abs=1e-9)
    assert float(shown.high) == pytest.approx(1 - math.exp(mean - t * error), abs=1e-9)


@pytest.mark.parametrize(
    ("drops", "verdict", "because"),
    [
        (("0.30", "0.301", "0.299", "0.30"), Verdict.PASS, None),
        (("0.22", "0.30", "0.27", "0.25"), Verdict.CONDITIONAL, Because.GUARD),
        (("0.20", "0.28", "0.25", "0.24"), Verdict.INCONCLUSIVE, None),
        (("0.20", "0.201", "0.199", "0.20"), Verdict.FAIL, None),
    ],
)
@pytest.mark.parametrize("name", ["interval", "guarded"])
def test_interval_and_guard_band_give_four_answers(name, drops, verdict, because):
    outcome = compare(effect(*drops), LIMIT, rule(name))
    assert (outcome.verdict, outcome.because) == (verdict, because)


def test_a_guard_factor_of_zero_is_simple_acceptance():
    assert compare(effect("0.22", "0.30", "0.27", "0.25"), LIMIT, rule("guarded", guard_r=0)).verdict is Verdict.PASS


def test_a_rule_that_needs_an_interval_says_nothing_with_too_few_pairs():
    assert compare(effect("0.4", "0.4"), LIMIT, rule("interval")).verdict is Verdict.INCONCLUSIVE


def test_the_rounded_comparison_rounds_half_to_even_as_the_contract_says():
    rounded = parse_plan({"decision": {"comparison": "rounded", "digits": 1}}).decision
    assert compare(effect("0.2495"), LIMIT, rounded).value == Decimal("0.250")  # the even neighbour of 24.9 | 25.0
    assert compare(effect("0.2485"), LIMIT, rounded).value == Decimal("0.248")
    assert compare(effect("0.249499999999999"), LIMIT, rounded).verdict is Verdict.FAIL  # rounded once, not twice
    assert compare(effect("0.24951"), LIMIT, rounded).verdict is Verdict.PASS
    assert compare(effect("0.24951"), LIMIT, SIMPLE).verdict is Verdict.FAIL
    assert compare(effect("0.24951"), LIMIT, rounded).value == Decimal("0.250")


def test_one_baseline_run_that_would_flip_the_answer_is_found():
    pairs = Effect(((Fraction(1000), Fraction(740)), (Fraction(1040), Fraction(740))), drop=True)
    assert pairs.reaches(LIMIT)
    assert flips(pairs, [Fraction(980), Fraction(1040)], [LIMIT], SIMPLE)
    assert not flips(pairs, [Fraction(1000), Fraction(1040)], [LIMIT], SIMPLE)


@pytest.mark.parametrize("name", ["simple", "interval", "guarded"])
def test_the_risk_of_every_rule_is_said_in_both_languages(name):
    words = risk(parse_plan().decision if name == "simple" else rule(name))
    assert "rule" in words.en
    assert "判定规则" in words.zh
    assert "{" not in words.en + words.zh


@pytest.mark.parametrize("pairs", [(), ((Fraction(0), Fraction(1)),), ((Fraction(1), Fraction(0)),), ((Fraction(1), Fraction(-1)),)])
def test_nothing_zero_and_negative_measurements_have_no_effect(pairs):
    with pytest.raises(ValueError, match="positive"):
        Effect(pairs, drop=True)


@pytest.mark.parametrize("rule_name", ["simple", "interval", "guarded"])
@pytest.mark.parametrize("scale", [1, 10**18, 10**45, 10**90])
def test_no_ratio_however_wild_keeps_a_comparison_from_an_answer(rule_name, scale):
    for wild in (Fraction(scale), Fraction(1, scale)):
        pairs = tuple((Fraction(7, 3), wild * n) for n in (1, 2, 3, 5))
        for drop in (True, False):
            outcome = compare(Effect(pairs, drop), LIMIT, rule(rule_name))
            assert outcome.verdict in set(Verdict)
            assert percent(outcome.value, LIMIT).endswith(" %")
    assert compare(Effect(((Fraction(1), Fraction(scale)),), False), LIMIT, rule("simple", comparison="rounded", digits=2)).value >= 0


def test_pairs_that_have_nothing_to_do_with_each_other_have_a_bound_all_the_same():
    pairs = tuple((Fraction(1), Fraction(n)) for n in (1, 10**250, 1, 10**250))
    assert interval(Effect(pairs, False), rule("interval", confidence="0.999")).high > 10**300
