"""Recompute and placebo may run several times: the placebo's gain is the mean over their pairs, so the noise of one run decides less."""

from fractions import Fraction
from itertools import permutations

import pytest

from gates.g3.extension import extension
from gates.judge import judge
from gates.model import ClaimStatus, StepKind
from gates.odds.alarms import alarms
from gates.odds.effects import Noise
from gates.plan import InvalidPlan, parse_plan
from gates.registry import GATES
from gates.rules import across
from gates.rules.claim import Findings
from gates.steps import numbered
from gates.time_needed import needed
from tests.bundles import Truth, merged, small_plan
from tests.bundles.gates import g3_evidence
from tests.unit.gates.measured import measured

RATE = 10**9


def plan_of(controls, *more):
    return parse_plan(merged({"arms": {"controls": controls}, "workload": {"tiers": [2]}, "g4": {"tier": 2}}, _TIERS, *more))


_TIERS = {"g3": {"ttft_p50_drop_min": {"tiers": [2]}, "throughput_gain_band": {"tiers": [2]}}}


def placebo(plan, recomputed, placebos, more=()):
    runs = [measured(plan, "recompute", numbered("recompute", i), {2: (1, rate)}) for i, rate in enumerate(recomputed, 1)]
    runs += [measured(plan, "placebo", numbered("placebo", i), {2: (1, rate)}, f"p{i}") for i, rate in enumerate(placebos, 1)]
    return across.placebo(Findings(plan, (*runs, *more)))


def jobs(plan):
    return [s for s in GATES["G3"].steps(plan) if s.kind is StepKind.JOB]


def test_they_run_as_often_as_the_plan_says_turned_around_every_second_time_and_each_placebo_asks_new_prompts():
    beside = jobs(parse_plan({"arms": {"controls": 3}}))[4:]
    assert [s.key for s in beside] == ["recompute", "placebo", "placebo-2", "recompute-2", "recompute-3", "placebo-3"]
    assert [s.params["run_index"] for s in beside] == [5, 6, 7, 8, 9, 10]
    assert [s.params["set"] for s in beside if s.params["arm"] == "placebo"] == ["g3-placebo", "g3-placebo-2", "g3-placebo-3"]
    assert {s.params["set"] for s in beside if s.params["arm"] == "recompute"} == {"g3"}
    assert [s.params["repeat"] for s in beside if s.params["arm"] == "recompute"] == [32, 0, 0]  # one run tells the noise floor of its outputs
    assert not any(s.params["store"] for s in beside)


def test_baseline_tuned_still_runs_once():
    plan = parse_plan({"arms": {"controls": 2, "once": ["recompute", "placebo", "baseline_tuned"]}})
    assert [s.key for s in jobs(plan)[4:]] == ["recompute", "placebo", "baseline_tuned", "placebo-2", "recompute-2"]


def test_a_plan_that_does_not_repeat_them_has_the_hash_that_it_always_had():
    plan = parse_plan()
    assert not {"controls", "prompts"} & set(plan.data["arms"])
    assert parse_plan({"arms": {"controls": 1, "prompts": "shared"}}).hash == plan.hash
    asked = [group for group in plan.evidence.required if group != "soak_kernel_log"]  # what the default plan required when it had this hash
    assert parse_plan({"evidence": {"required": asked}}).hash == "sha256:f05ae6ace86569180c2ff2d8f92698cd26e7d6bf22db7bfc28e56e325c38f68e"


@pytest.mark.parametrize(
    ("arms", "claims", "path"),
    [
        ({"controls": 0}, [], "arms.controls"),
        ({"controls": 21}, [], "arms.controls"),
        ({"controls": 2, "once": ["recompute"]}, ["placebo"], "arms.controls"),
        ({"controls": 2, "once": []}, ["placebo", "output_identity"], "arms.controls"),
    ],
)
def test_a_senseless_number_is_refused(arms, claims, path):
    with pytest.raises(InvalidPlan) as caught:
        parse_plan({"arms": arms, "not_tested": [{"claim": c, "reason": "agreed"} for c in claims]})
    assert [p.path for p in caught.value.problems] == [path]


@pytest.mark.parametrize(("off", "status"), [(0, ClaimStatus.HOLDS), (1, ClaimStatus.BREACHED)])
def test_the_mean_gain_of_the_pairs_is_held_against_the_limit_exactly(off, status):
    # +10.25 % and 0 %: the geometric mean is +5 % exactly; one unit more in the last place is above it
    found = placebo(plan_of(2), [RATE, RATE], [Fraction("1.1025") * RATE + off, RATE])
    assert found.status is status
    assert "2 pairs of runs" in found.reason.en


def test_one_pair_alone_is_what_it_always_was():
    limit = Fraction("1.05") * RATE
    assert placebo(plan_of(1), [RATE], [limit]).status is ClaimStatus.HOLDS
    assert placebo(plan_of(1), [RATE], [limit + 1]).status is ClaimStatus.BREACHED


def test_which_run_is_paired_with_which_changes_nothing():
    rates = (RATE, RATE * 103 // 100, RATE * 95 // 100)
    found = {(f.status, f.value) for order in permutations(rates) for f in [placebo(plan_of(3), order, [RATE * 106 // 100] * 3)]}
    assert len(found) == 1


def test_a_missing_run_is_not_made_up_for_by_the_recompute_run_of_an_extension():
    plan = plan_of(2)
    extra = measured(plan, "recompute", "recompute-3", {2: (1, RATE)}, "g3-extension")
    assert placebo(plan, [RATE], [RATE, RATE], (extra,)).status is ClaimStatus.UNKNOWN
    assert placebo(plan, [RATE, RATE], [RATE], (extra,)).status is ClaimStatus.UNKNOWN
    assert placebo(plan, [RATE, RATE], [RATE, RATE * 2], (extra,)).status is ClaimStatus.BREACHED
    assert [s.key for s in extension(plan) if s.params.get("arm") == "recompute"] == ["recompute-3"]


@pytest.fixture(scope="module")
def repeated():
    return small_plan({"arms": {"controls": 2}})


def test_a_whole_gate_with_two_of_each_passes_and_shows_both(repeated):
    document = judge(g3_evidence(Truth(), repeated).bundle())
    assert document["verdict"] == "pass"
    shown = document["figures"]["ttft"]["2"]
    assert [row["run"] for row in shown["recompute"]] == ["recompute", "recompute-2"]
    assert len(shown["placebo"]) == 2
    overhead = [d for d in document["figures"]["diagnostics"] if d["kind"] == "store_overhead"]
    assert len(overhead) == 3


@pytest.mark.parametrize("gone", ["recompute", "recompute-2", "placebo", "placebo-2"])
def test_without_any_one_of_them_it_is_no_pass(repeated, gone):
    evidence = g3_evidence(Truth(), repeated)
    for path in [p for p in evidence.files if p.startswith(f"evidence/{gone}/")]:
        evidence.drop(path)
    document = judge(evidence.bundle())
    assert document["verdict"] == "inconclusive"
    assert f"evidence/{gone}/" in document["checks"][0]["reason"]["en"]


def test_runs_beyond_the_plan_belong_to_no_step(repeated):
    evidence = g3_evidence(Truth(), repeated)
    evidence.plan = small_plan()
    document = judge(evidence.bundle())
    assert document["verdict"] == "inconclusive"
    assert "belongs to no step" in document["checks"][0]["reason"]["en"]


def test_more_of_them_never_make_a_false_alarm_likelier_and_take_longer():
    shares = [next(a.share for a in alarms(plan_of(n), Noise(0.03)) if a.claim == "placebo") for n in range(1, 21)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.1 > 0.001 > shares[-1]
    frozen = {"tiers": {"2": {"output_tokens_per_s": "50.0"}}}
    one, three = (needed(plan_of(n), "G3", frozen) for n in (1, 3))
    assert three.seconds / one.seconds == Fraction(12, 8)  # six runs and two store phases; four runs more
