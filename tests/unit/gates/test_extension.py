"""An inconclusive G3 is extended once by planned run pairs, and judged over all of them."""

import json

import pytest

from gates import g3_main
from gates.canonical import canonical_bytes, sha256_of
from gates.g3.extension import FIRST_VERDICT, extension
from gates.judge import judge
from gates.model import StepKind
from gates.plan import InvalidPlan, changed_plan
from gates.rules.across import frozen_hash
from gates.whatif import what_if
from tests.bundles import Truth, merged, small_plan
from tests.bundles.gates import extended_evidence, g3_evidence

# A plan of small runs with an interval over four pairs, extended by four more.
INTERVAL = {
    "decision": {"rule": "interval", "pairs": 4},
    "arms": {"order": ["baseline", "candidate", "candidate", "baseline"] * 2},
    "workload": {"tiers": [2]},
    "g3": {"ttft_p50_drop_min": {"tiers": [2]}, "throughput_gain_band": {"tiers": [2]}, "extension_pairs": 4},
    "g4": {"tier": 2},
}
# Pairs whose drop lies around the limit of 25 %: below it, but not so far that four pairs could tell.
UNDECIDED = (0.222, 0.262, 0.226, 0.258)
LOW_LIMITS = {"g3": {"throughput_gain_band": {"low": "0.01", "high": "0.9"}}, "validity": {"replay_gain_max": "0.5"}}


def plan_of(*more):
    return small_plan(merged(INTERVAL, LOW_LIMITS, *more))


def truth(*drops):
    return Truth(noise=0.0005, candidate_drops=drops)


def drop(document):
    return next(c for c in document["checks"] if c["id"] == "g3.ttft_p50_drop.c2")


@pytest.fixture(scope="module")
def undecided():
    return judge(g3_evidence(truth(*UNDECIDED), plan_of()).bundle())


def judged(undecided, *drops, plan=None, edit=lambda e: e):
    evidence = extended_evidence(truth(*UNDECIDED, *drops), plan or plan_of(), undecided)
    edit(evidence)
    return judge(evidence.bundle())


def test_an_undecided_interval_says_by_how_many_pairs_it_can_be_extended(undecided):
    assert (undecided["verdict"], drop(undecided)["remedy"]) == ("inconclusive", "more_pairs")
    assert undecided["extension"] | {"reason": None} == {"pairs": 4, "done": None, "may": True, "reason": None}
    assert "4 more run pairs can decide it" in undecided["summary"]["en"]
    assert "补充 4 个轮次对" in undecided["summary"]["zh-CN"]


@pytest.mark.parametrize(
    ("drops", "verdict"),
    [
        ((0.33, 0.335, 0.33, 0.335), "pass"),
        ((0.30, 0.31, 0.30, 0.31), "conditional"),
        ((0.20, 0.19, 0.20, 0.19), "fail"),
        (UNDECIDED, "inconclusive"),
    ],
)
def test_the_second_judgement_pools_old_and_new_pairs(undecided, drops, verdict):
    document = judged(undecided, *drops)
    check = drop(document)
    assert (document["verdict"], check["verdict"]) == (verdict, verdict)
    assert (document["decision"]["pairs"], check["interval"]["n"]) == (8, 8)
    low, high = sorted((sum(UNDECIDED) / 4, sum(drops) / 4))
    assert low - 0.002 <= float(check["value"]) <= high + 0.002
    assert document["extension"]["done"]["from_verdict"] == sha256_of(undecided)
    assert {c["status"] for c in document["claims"]} == {"holds", "not_applicable"}
    assert "looked at 2 times" in document["risk"]["en"]


def test_an_extended_attempt_can_be_looked_at_under_another_plan(undecided):
    made = extended_evidence(truth(*UNDECIDED, 0.33, 0.335, 0.33, 0.335), plan_of(), undecided).bundle()
    told = what_if(made, changed_plan(made.plan, {"g3": {"ttft_p50_drop_min": {"limit": "0.5"}}}))
    assert (told["sealed"]["verdict"], told["other"]["verdict"]) == ("pass", "fail")
    assert [c["check"] for c in told["checks"]] == ["g3.ttft_p50_drop.c2"]


def test_a_verdict_of_another_plan_is_not_what_was_extended(undecided):
    made = extended_evidence(truth(*UNDECIDED, 0.33, 0.335, 0.33, 0.335), plan_of(), undecided | {"plan_hash": "sha256:" + "0" * 64}).bundle()
    assert "another attempt or plan" in str([c["reason"]["en"] for c in judge(made)["checks"]])


def test_inconclusive_after_the_extension_says_that_it_was_extended_already(undecided):
    document = judged(undecided, *UNDECIDED)
    assert document["verdict"] == "inconclusive"
    assert document["extension"]["may"] is False
    assert "extended once already" in document["summary"]["en"]
    assert "已补充过一次" in document["summary"]["zh-CN"]


@pytest.mark.parametrize("gone", ["run-9", "run-12", "run-16", "recompute-2"])
def test_a_missing_run_of_the_extension_is_never_a_pass_and_is_named(undecided, gone):
    def lose(e):
        for path in [p for p in e.files if p.startswith(f"evidence/{gone}/")]:
            e.drop(path)

    document = judged(undecided, 0.31, 0.31, 0.31, 0.31, edit=lose)
    assert document["verdict"] == "inconclusive"
    assert f"evidence/{gone}/gpu01/" in document["checks"][0]["reason"]["en"]


def test_a_bundle_that_claims_no_extension_but_holds_its_runs_is_judged_on_incomplete_evidence(undecided):
    def deny(e):
        e.inputs(lambda d: d.update(extension=None))

    document = judged(undecided, 0.31, 0.31, 0.31, 0.31, edit=deny)
    assert document["verdict"] == "inconclusive"
    assert "belongs to no step" in document["checks"][0]["reason"]["en"]


def test_a_bundle_that_claims_an_extension_without_its_runs_lacks_every_one_of_them(undecided):
    evidence = g3_evidence(truth(0.31, 0.31, 0.31, 0.31), plan_of())
    evidence.files[FIRST_VERDICT] = canonical_bytes(undecided)
    evidence.inputs(lambda d: d.update(extension={"pairs": 4, "from_verdict": sha256_of(undecided), "at": "2026-12-01"}))
    assert judge(evidence.bundle())["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda told, first: told.update(pairs=2), "the plan allows 4"),
        (lambda told, first: told.update(pairs=True), "the plan allows 4"),
        (lambda told, first: told.update(from_verdict="sha256:" + "0" * 64), "is not the verdict"),
        (lambda told, first: first.update(verdict="fail"), "is not the verdict"),
        (lambda told, first: (first.update(verdict="fail"), told.update(from_verdict=sha256_of(first))), "may be extended"),
        (lambda told, first: (first["extension"].update(may=False), told.update(from_verdict=sha256_of(first))), "may be extended"),
        (lambda told, first: (first["attempt"].update(id="another"), told.update(from_verdict=sha256_of(first))), "another attempt"),
    ],
)
def test_an_extension_stands_only_on_the_inconclusive_verdict_of_this_very_attempt(undecided, spoil, said):
    def edit(e):
        first = json.loads(e.files[FIRST_VERDICT])
        e.inputs(lambda d: spoil(d["extension"], first))
        e.files[FIRST_VERDICT] = canonical_bytes(first)

    document = judged(undecided, 0.31, 0.31, 0.31, 0.31, edit=edit)
    assert document["verdict"] == "inconclusive"
    assert said in document["checks"][0]["reason"]["en"]


def test_prompts_of_the_first_runs_are_not_asked_again_in_the_extension(undecided):
    def repeat(e):
        old = {(r["tier"], r["prompt"]): r["prompt_sha256"] for r in e.rows("run-1", "records.jsonl") if r["phase"] == "measure"}
        for step in [f"run-{n}" for n in range(9, 17)] + ["recompute-2"]:
            e.lines(step, "records.jsonl", lambda rows: [{**r, "prompt_sha256": old.get((r["tier"], r["prompt"]), "x")} for r in rows])

    document = judged(undecided, 0.31, 0.31, 0.31, 0.31, edit=repeat)
    assert document["verdict"] == "invalid"
    assert "used elsewhere" in json.dumps(document["claims"])


def test_wrong_outputs_in_the_extension_are_the_products_fault(undecided):
    def corrupt(e):
        e.lines("run-10", "records.jsonl", lambda rows: [{**r, "output_sha256": "0" * 64} if r["phase"] == "measure" else r for r in rows])

    document = judged(undecided, 0.31, 0.31, 0.31, 0.31, edit=corrupt)
    assert document["verdict"] == "fail"
    assert next(c for c in document["checks"] if c["id"] == "g3.candidate_output_identity")["verdict"] == "fail"


def test_what_only_other_evidence_can_answer_is_not_extended():
    document = judge(g3_evidence(plan=small_plan()).drop("evidence/run-2/gpu01/client.json").repack("run-2").bundle())
    assert (document["verdict"], document["extension"]["may"]) == ("inconclusive", False)
    assert "More run pairs would not decide it" in document["summary"]["en"]
    assert "evidence/run-2/gpu01/client.json" in document["summary"]["en"]


def test_baselines_that_disagree_can_be_extended_and_a_plan_may_forbid_it():
    unsteady = Truth(baseline_runs=(1.0, 1.08))
    assert judge(g3_evidence(unsteady).bundle())["extension"]["may"] is True
    document = judge(g3_evidence(unsteady, small_plan({"g3": {"extension_pairs": 0}})).bundle())
    assert document["extension"]["may"] is False
    assert "allows no extension" in document["summary"]["en"]


def test_the_steps_of_an_extension_continue_the_plan_in_whole_blocks_over_fresh_prompts():
    plan = small_plan()
    first, more = g3_main.steps(plan), extension(plan)
    jobs = [s for s in more if s.kind is StepKind.JOB]
    assert [s.key for s in more] == ["run-5", "run-6", "run-7", "run-8", "recompute-2", "judge-2", "report-2"]
    assert [s.params["arm"] for s in jobs] == [*plan.arms.order, "recompute"]
    assert [s.params["store"] for s in jobs] == [True, True, False, False, False]
    sets = {s.params["set"] for s in jobs}
    assert len(sets) == 1
    assert not sets & {s.params.get("set") for s in first}
    assert not {s.key for s in first} & {s.key for s in more}
    assert extension(small_plan({"g3": {"extension_pairs": 0}})) == ()


@pytest.mark.parametrize("pairs", [1, 3, -2, 22, "two", None])
def test_the_pairs_of_an_extension_are_whole_blocks(pairs):
    with pytest.raises(InvalidPlan) as caught:
        small_plan({"g3": {"extension_pairs": pairs}})
    assert "g3.extension_pairs" in caught.value.problems[0].path


@pytest.mark.parametrize(("slower", "may"), [(1.07, True), (1.32, False)])
def test_a_baseline_too_far_from_g2_for_any_extension_is_told_to_look_for_the_cause(slower, may):
    evidence = g3_evidence(truth(0.3), plan_of({"decision": {"rule": "simple"}}))

    def frozen(inputs):
        told = inputs["g2_baseline"]
        for row in told["tiers"].values():
            row["ttft_p50_ns"] = int(row["ttft_p50_ns"] / slower)
        told["hash"] = frozen_hash(told)

    document = judge(evidence.inputs(frozen).bundle())
    assert (document["verdict"], document["extension"]["may"]) == ("inconclusive", may)
    assert ("the cause found, or a new G2" in document["summary"]["en"]) is not may
    assert ("查明原因" in document["summary"]["zh-CN"]) is not may
