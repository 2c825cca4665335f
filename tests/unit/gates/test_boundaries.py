"""Exactly at each limit, and one unit in the last place on either side of it: every rule, every limit of G2 and G3."""

import dataclasses
import itertools
from decimal import Decimal
from fractions import Fraction

import pytest

from gates import g3_main
from gates.g3.deciding import Above, Decided, of_drop, of_gain
from gates.model import Because, ClaimStatus, Verdict
from gates.odds.planner import with_pairs
from gates.plan import parse_plan
from gates.rules import agreement
from gates.rules.decision import Effect, above, at_least, compare, decide, flips, interval
from tests.bundles import Truth, g3_evidence

PASS, FAIL, CONDITIONAL, INCONCLUSIVE, INVALID = Verdict.PASS, Verdict.FAIL, Verdict.CONDITIONAL, Verdict.INCONCLUSIVE, Verdict.INVALID
QUARTER, LOW, HIGH = Decimal("0.25"), Decimal("0.29"), Decimal("0.40")
BASE = 10**9  # a second in ns: a unit in the last place is one ns
HOLDS, BREACHED = ClaimStatus.HOLDS, ClaimStatus.BREACHED
CLEAN = (HOLDS, HOLDS, HOLDS)


def plan(rule="simple", pairs=4, *, above="audit", **decision):
    chosen = with_pairs(parse_plan(), pairs, rule=rule)
    band = dataclasses.replace(chosen.g3.throughput_gain_band, above=above)
    g3 = dataclasses.replace(chosen.g3, throughput_gain_band=band)
    return dataclasses.replace(chosen, decision=dataclasses.replace(chosen.decision, **decision), g3=g3)


DECISION = {rule: plan(rule=rule).decision for rule in ("interval", "guarded")}


def drop(*news, base=BASE):
    return Effect(tuple((Fraction(base), Fraction(new)) for new in news), drop=True)


def gain(*news, base=BASE):
    return Effect(tuple((Fraction(base), Fraction(new)) for new in news), drop=False)


AT = BASE * 3 // 4


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 8])
@pytest.mark.parametrize(("off", "verdict"), [(-1, PASS), (0, PASS), (1, FAIL)])
def test_simple_one_ns_in_one_run_decides_whatever_the_number_of_pairs(pairs, off, verdict):
    effect = drop(*[AT] * (pairs - 1), AT + off)
    assert compare(effect, QUARTER, plan(pairs=pairs).decision).verdict is verdict
    assert (compare(effect, QUARTER, plan(pairs=pairs).decision).value >= QUARTER) is (verdict is PASS)


@pytest.mark.parametrize("limit", ["0.001", "0.1", "0.25", "0.3", "0.333", "0.9", "0.999"])
@pytest.mark.parametrize(("off", "met"), [(-1, True), (0, True), (1, False)])
def test_every_drop_limit_is_held_exactly(limit, off, met):
    at = BASE * (1 - Fraction(limit))
    assert drop(at + off).reaches(Decimal(limit)) is met
    assert drop(at + off).exceeds(Decimal(limit)) is (off < 0)


@pytest.mark.parametrize("limit", ["-0.5", "-0.05", "0", "0.05", "0.29", "0.4", "12"])
@pytest.mark.parametrize(("off", "met", "over"), [(-1, False, False), (0, True, False), (1, True, True)])
def test_every_gain_limit_is_held_exactly(limit, off, met, over):
    effect = gain(BASE * (1 + Fraction(limit)) + off)
    assert (effect.reaches(Decimal(limit)), effect.exceeds(Decimal(limit))) == (met, over)


@pytest.mark.parametrize("rule", ["interval", "guarded"])
@pytest.mark.parametrize(("off", "verdict"), [(-1, PASS), (0, PASS), (1, FAIL)])
def test_runs_without_any_spread_are_decided_by_the_estimate_alone(rule, off, verdict):
    assert decide(drop(*[AT + off] * 4), QUARTER, plan(rule).decision)[0] is verdict


@pytest.mark.parametrize("rule", ["interval", "guarded"])
@pytest.mark.parametrize(("off", "verdict", "because"), [(-2, CONDITIONAL, Because.GUARD), (0, CONDITIONAL, Because.GUARD), (1, INCONCLUSIVE, None)])
def test_with_spread_the_estimate_exactly_at_the_limit_still_clears_it_and_its_interval_does_not(rule, off, verdict, because):
    # base x new x base/new: a spread whose mean is exactly the limit
    pairs = ((Fraction(BASE), AT * Fraction(11, 10)), (Fraction(BASE), AT / Fraction(11, 10) + off)) * 2
    assert decide(Effect(pairs, drop=True), QUARTER, plan(rule).decision) == (verdict, because)


def last_that(holds, good, bad):
    """Return the last whole number on the good side, by bisection."""
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


@pytest.mark.parametrize("rule", ["interval", "guarded"])
def test_the_last_ns_at_which_the_bound_clears_the_limit_passes_and_the_next_is_conditional(rule):
    chosen = plan(rule, confidence=Decimal("0.97725"), guard_r=Decimal(1))  # then both rules have the same bound

    def effect(last):
        return drop(690_000_000, 700_000_000, 710_000_000, last)

    edge = last_that(lambda n: interval(effect(n), chosen.decision).low >= QUARTER, 705_000_000, 900_000_000)
    assert decide(effect(edge), QUARTER, chosen.decision)[0] is PASS
    assert decide(effect(edge + 1), QUARTER, chosen.decision) == (CONDITIONAL, Because.GUARD)
    assert interval(effect(edge + 1), chosen.decision).low < QUARTER <= interval(effect(edge), chosen.decision).low


@pytest.mark.parametrize("rule", ["interval", "guarded"])
def test_the_last_ns_at_which_the_upper_bound_reaches_the_limit_is_inconclusive_and_the_next_fails(rule):
    chosen = plan(rule, confidence=Decimal("0.97725"), guard_r=Decimal(1))

    def effect(first):
        return drop(first, 800_000_000, 795_000_000, 805_000_000)

    edge = last_that(lambda n: interval(effect(n), chosen.decision).high >= QUARTER, 740_000_000, 800_000_000)
    assert decide(effect(edge), QUARTER, chosen.decision)[0] is INCONCLUSIVE
    assert decide(effect(edge + 1), QUARTER, chosen.decision)[0] is FAIL


@pytest.mark.parametrize(("pairs", "verdict"), [(1, INCONCLUSIVE), (3, INCONCLUSIVE), (4, PASS)])
@pytest.mark.parametrize("rule", ["interval", "guarded"])
def test_three_pairs_are_too_few_and_four_are_enough(rule, pairs, verdict):
    assert decide(drop(*[AT - 1] * pairs), QUARTER, plan(rule).decision)[0] is verdict


@pytest.mark.parametrize(
    ("digits", "value", "met"),
    [
        (0, "0.245", False),  # 24.5 -> 24, half to even
        (0, "0.2450000001", True),
        (1, "0.2495", True),  # 24.95 -> 25.0, half to even
        (1, "0.2494999999", False),
        (1, "0.2495000001", True),
        (2, "0.24995", True),
        (2, "0.2499499999", False),
        (3, "0.249995", True),
        (3, "0.2499949999", False),
    ],
)
@pytest.mark.parametrize("is_drop", [True, False])
def test_rounded_limits_are_met_from_the_half_unit_on_as_the_contract_rounds(digits, value, met, is_drop):
    rounded = plan(comparison="rounded", digits=digits).decision
    effect = Effect(((Fraction(1), 1 - Fraction(value) if is_drop else 1 + Fraction(value)),), drop=is_drop)
    assert at_least(effect, QUARTER, rounded) is met
    assert compare(effect, QUARTER, rounded).verdict is (PASS if met else FAIL)


@pytest.mark.parametrize(("value", "over"), [("0.4005", False), ("0.4005000001", True), ("0.4014999999", True), ("0.40", False), ("0.3995", False)])
def test_the_rounded_upper_end_of_the_band_is_exceeded_from_beyond_the_half_unit_on(value, over):
    rounded = plan(comparison="rounded", digits=1).decision
    assert above(Effect(((Fraction(1), 1 + Fraction(value)),), drop=False), HIGH, rounded) is over


@pytest.mark.parametrize(
    ("word", "audits", "off", "answer"),
    [
        *(("audit", CLEAN, off, Decided(PASS)) for off in (-1, 0)),
        ("audit", CLEAN, 1, Decided(CONDITIONAL, Because.ABOVE_BAND, Above.CLEAN)),
        ("audit", (HOLDS, BREACHED, HOLDS), 1, Decided(INVALID, above=Above.BREACHED)),
        ("audit", (HOLDS, None, HOLDS), 1, Decided(INCONCLUSIVE, above=Above.MISSING)),
        ("audit", (HOLDS, ClaimStatus.NOT_TESTED, HOLDS), 1, Decided(INCONCLUSIVE, above=Above.MISSING)),
        ("audit", (HOLDS, None, HOLDS), 0, Decided(PASS)),  # inside the band nothing more is asked for
        ("accept", CLEAN, 1, Decided(PASS, above=Above.ACCEPTED)),
        ("fail", CLEAN, 1, Decided(FAIL, above=Above.REFUSED)),
        ("fail", CLEAN, 0, Decided(PASS)),
    ],
)
def test_the_upper_end_of_the_band_belongs_to_it_and_one_unit_more_follows_the_plan(word, audits, off, answer):
    new = BASE * Fraction(7, 5) + off
    assert of_gain(plan(pairs=2, above=word), gain(new, new), [Fraction(BASE)] * 2, audits) == answer


@pytest.mark.parametrize(("off", "verdict"), [(-1, FAIL), (0, PASS), (1, PASS)])
def test_the_lower_end_of_the_band_belongs_to_it(off, verdict):
    new = BASE * Fraction(129, 100) + off
    assert of_gain(plan(pairs=2), gain(new, new), [Fraction(BASE)] * 2, CLEAN).verdict is verdict


def test_above_the_band_an_interval_that_touches_its_end_passes_with_a_remark():
    equal = gain(*[BASE * Fraction(7, 5) + 1] * 4)
    assert of_gain(plan(), equal, [Fraction(BASE)] * 4, CLEAN).above is Above.CLEAN  # no spread: the interval lies above
    apart = gain(1_360_000_000, 1_400_000_000, 1_450_000_000, 1_420_000_000)
    assert of_gain(plan(), apart, [Fraction(BASE)] * 4, CLEAN) == Decided(PASS, above=Above.REACHES)


@pytest.mark.parametrize(("word", "said"), [("audit", Above.REACHES), ("accept", Above.ACCEPTED)])
@pytest.mark.parametrize(
    ("rule", "answer"), [("simple", (PASS, None)), ("interval", (CONDITIONAL, Because.GUARD)), ("guarded", (CONDITIONAL, Because.GUARD))]
)
def test_above_the_band_is_worth_no_more_than_the_rule_makes_of_the_low_end(word, said, rule, answer):
    noisy = gain(1_150_000_000, 1_650_000_000, 1_300_000_000, 1_560_000_000)  # 40.06 %, its interval from 15 % on
    assert of_gain(plan(rule, above=word), noisy, [Fraction(BASE)] * 4, CLEAN) == Decided(*answer, above=said)


def test_above_the_band_is_fragile_where_one_baseline_run_alone_lifts_it_over_the_low_end():
    one_slow = [Fraction(BASE)] * 3 + [Fraction(BASE, 2)]
    effect = Effect(tuple((base, Fraction(BASE * 6, 5)) for base in one_slow), drop=False)  # 42.7 %, without the slow run 20 %
    for word, said in (("audit", Above.REACHES), ("accept", Above.ACCEPTED)):
        assert of_gain(plan(above=word), effect, one_slow, CLEAN) == Decided(CONDITIONAL, Because.FRAGILE, said)


def test_inside_a_band_whose_top_is_open_no_run_makes_it_fragile_by_leaving_at_the_top():
    bases = [Fraction(BASE), Fraction(BASE * 102, 100)]
    effect = Effect(tuple((base, Fraction(BASE * 1405, 1000)) for base in bases), drop=False)
    assert of_gain(plan(pairs=2, above="accept"), effect, bases, CLEAN) == Decided(PASS)
    assert of_gain(plan(pairs=2), effect, bases, CLEAN) == Decided(CONDITIONAL, Because.FRAGILE)


@pytest.mark.parametrize("pairs", [2, 3, 4, 8])
def test_exactly_at_the_limit_with_equal_baselines_nothing_is_fragile(pairs):
    for base in (BASE, 1_234_567_892):
        effect = drop(*[base * 3 // 4] * pairs, base=base)
        assert of_drop(plan(pairs=pairs), effect, [Fraction(base)] * pairs) == Decided(PASS)


@pytest.mark.parametrize(("off", "verdict"), [(0, PASS), (-1, Verdict.CONDITIONAL)])
def test_a_pass_is_fragile_from_the_first_ns_on_by_which_one_baseline_run_alone_would_miss(off, verdict):
    slow, fast = Fraction(BASE + 10**7), Fraction(BASE) + off  # with the slow run left out, the fast one is the base
    effect = Effect(((slow, Fraction(AT)), (fast, Fraction(AT))), drop=True)
    assert of_drop(plan(pairs=2), effect, [slow, fast]).verdict is verdict
    assert flips(effect, [slow, fast], [QUARTER], plan(pairs=2).decision) is (verdict is CONDITIONAL)


@pytest.mark.parametrize(("off", "holds"), [(-1, True), (0, True), (1, False)])
def test_two_runs_agree_up_to_exactly_the_limit(off, holds):
    values = [Fraction(BASE), Fraction(BASE) * Fraction(105, 100) + off]
    for ordered in (values, values[::-1]):
        for rule in ("simple", "interval"):
            assert agreement.agree(ordered, Decimal("0.05"), plan(rule=rule).decision) is holds


@pytest.mark.parametrize("n", [3, 4, 8])
def test_under_simple_more_runs_agree_up_to_the_limit_of_their_typical_difference(n):
    values = [Fraction(BASE + i * 10**7) for i in range(n)]
    typical = agreement.difference(values)
    ulp, simple = Decimal("1e-12"), plan(rule="simple").decision
    assert [agreement.agree(values, typical + off, simple) for off in (-ulp, Decimal(0), ulp)] == [False, True, True]
    assert [agreement.agree(values[:3], agreement.difference(values[:3]) + off, DECISION["interval"]) for off in (-ulp, ulp)] == [False, True]


@pytest.mark.parametrize("rule", ["interval", "guarded"])
@pytest.mark.parametrize("n", [4, 8, 20])
def test_where_a_plan_decides_by_intervals_runs_agree_up_to_the_limit_of_the_lower_bound(n, rule):
    values = [Fraction(BASE + i * 10**7) for i in range(n)]
    ulp, decision = Decimal("1e-12"), DECISION[rule]
    bound = agreement.least_difference(values, decision.confidence)
    assert bound < agreement.difference(values)
    assert [agreement.agree(values, bound + off, decision) for off in (-ulp, Decimal(0), ulp)] == [False, True, True]


def test_one_far_run_of_many_still_shows():
    far = [Fraction(BASE)] * 7 + [Fraction(BASE) * Fraction(112, 100)]
    assert not agreement.agree(far, Decimal("0.05"), plan(rule="simple").decision)
    assert agreement.agree(far, Decimal("0.05"), DECISION["interval"])  # eight runs do not prove it
    assert not agreement.agree([*far[:7], Fraction(BASE) * Fraction(118, 100)], Decimal("0.05"), DECISION["interval"])


@pytest.mark.parametrize(("end", "off", "holds"), [(105, 1, False), (105, 0, True), (105, -1, True), (95, -1, False), (95, 0, True), (95, 1, True)])
def test_a_baseline_agrees_with_g2_up_to_exactly_the_limit_on_either_side(end, off, holds):
    value = Fraction(BASE) * Fraction(end, 100) + off
    assert agreement.near(agreement.from_frozen(Fraction(BASE), [value, value]), Decimal("0.05")) is holds


@pytest.mark.parametrize(("off", "over"), [(-1, True), (0, False), (1, False)])
def test_a_replay_is_too_fast_from_one_ns_below_the_limit_on(off, over):
    later = Fraction(BASE) * Fraction(95, 100) + off
    assert agreement.replayed([[Fraction(BASE), later, later]]).exceeds(Decimal("0.05")) is over
    assert agreement.replayed([[Fraction(BASE), later], [Fraction(BASE), later]]).exceeds(Decimal("0.05")) is over


# The claims of a whole gate: the plan's limit set to what was measured, and to one unit in the last place less or more.
ULP = Decimal("1e-18")
UPPER = {
    "hbm_cold": ("validity", "hbm_hits_max"),
    "page_cache_cold": ("validity", "page_cache_resident_max"),
    "client_healthy": ("validity", "client_share_of_ttft_max"),
    "calibration": ("validity", "calibration_error_max"),
    "littles_law": ("validity", "littles_law_max"),
    "output_identity": ("validity", "divergence_excess_max"),
    "placebo": ("validity", "placebo_gain_max"),
    "replay": ("validity", "replay_gain_max"),
    "gain_explained": ("validity", "gain_explained_max"),
    "baselines_agree": ("g3", "agreement_max"),
    "g2_agreement": ("g3", "agreement_max"),
}
ARMS = {"replay": "candidate", "placebo": "placebo", "gain_explained": "candidate"}


@pytest.fixture(scope="module")
def bundle():
    return g3_evidence(Truth(noise=0.02, run_noise=0.005)).bundle()


def claims(bundle, section, field, value):
    part = dataclasses.replace(getattr(bundle.plan, section), **{field: value})
    judged = g3_main.judge(dataclasses.replace(bundle.plan, **{section: part}), bundle)
    return {(c.claim, c.arm): c for c in judged.claims}, {c.id: c for c in judged.checks}


@pytest.mark.parametrize("claim", UPPER)
def test_every_upper_limit_of_a_claim_holds_at_the_printed_value_and_breaks_just_below_it(bundle, claim):
    section, field = UPPER[claim]
    arm = ARMS.get(claim, "baseline")
    found = claims(bundle, section, field, getattr(getattr(bundle.plan, section), field))[0][claim, arm]
    exact = Decimal(found.value)
    if claim in ("placebo", "replay", "g2_agreement", "baselines_agree", "gain_explained"):  # printed with ten decimals, compared without rounding
        at = [exact - Decimal("1e-9"), exact + Decimal("1e-9")]
    else:
        at = [exact - ULP, exact]
    below, here = (claims(bundle, section, field, value)[0][claim, arm] for value in at)
    assert (below.status, here.status) == (BREACHED, HOLDS)
    assert Decimal(below.value) > at[0]
    assert Decimal(here.value) <= at[1]


def test_the_lower_limit_of_external_hits_holds_at_the_printed_value_and_breaks_just_above_it(bundle):
    for value, status in ((Decimal(1), HOLDS), (1 + ULP, BREACHED)):
        assert claims(bundle, "validity", "external_hits_min", value)[0]["external_hits", "candidate"].status is status


@pytest.mark.parametrize(
    ("ends", "status"), [((1, 2), HOLDS), ((1 + ULP, 2), BREACHED), (("0.5", 1), HOLDS), (("0.5", 1 - ULP), BREACHED), ((1, 1), HOLDS)]
)
def test_both_ends_of_the_device_bytes_belong_to_the_limit(bundle, ends, status):
    low, high = (Decimal(end) for end in ends)
    assert claims(bundle, "validity", "device_bytes_ratio", (low, high))[0]["device_bytes", "candidate"].status is status


@pytest.mark.parametrize(("field", "check"), [("ttft_p99_ratio_max", "g3.ttft_p99_ratio.c8"), ("tpot_p99_ratio_max", "g3.tpot_p99_ratio.c8")])
def test_a_guard_passes_at_its_limit_and_fails_below_what_was_measured(bundle, field, check):
    exact = Decimal(claims(bundle, "g3", "agreement_max", bundle.plan.g3.agreement_max)[1][check].value)
    step = Decimal("1e-9")
    answers = []
    for limit in (exact - step, exact + step):
        guards = dataclasses.replace(bundle.plan.g3.guards, **{field: limit})
        answers.append(claims(bundle, "g3", "guards", guards)[1][check].verdict)
    assert answers == [FAIL, PASS]


def test_an_sla_is_met_at_exactly_the_agreed_time_and_missed_one_ns_later(bundle):
    from gates.units import Quantity

    chosen = bundle.plan.g3.sla
    slowest = int(max(r.ttft_p50 for r in (run.stats[8] for run in _runs(bundle) if run.arm == "candidate")))
    answers = []
    for ns in (slowest - 1, slowest, slowest + 1):
        sla = dataclasses.replace(chosen, ttft_p50={8: Quantity(Decimal(ns), "ns")})
        answers.append(claims(bundle, "g3", "sla", sla)[1]["g3.sla_ttft_p50.c8"].verdict)
    assert answers in ([FAIL, PASS, PASS], [FAIL, FAIL, PASS])  # a median of an even number may end in half a ns


def _runs(bundle):
    from gates.rules.completeness import gather

    return gather(bundle.plan, bundle, g3_main.steps(bundle.plan)).findings.runs


def test_the_verdict_is_monotone_across_every_boundary():
    order = [PASS, CONDITIONAL, INCONCLUSIVE, FAIL]
    for rule, pairs in (("simple", 2), ("interval", 4), ("guarded", 4)):
        chosen = plan(rule, pairs)
        seen = [
            decide(drop(*[AT + shift + wobble for wobble in (-(10**7), 10**7) * (pairs // 2)]), QUARTER, chosen.decision)[0]
            for shift in range(-(5 * 10**7), 5 * 10**7, 10**6)
        ]
        assert all(order.index(a) <= order.index(b) for a, b in itertools.pairwise(seen))
        assert {seen[0], seen[-1]} == {PASS, FAIL}
