"""The gates declare their steps from the plan alone; what others build on stands here."""

import json

import pytest

from gates.model import ATTENDED, StepKind
from gates.plan import parse_plan
from gates.registry import GATES
from gates.steps import ATTEND_PACK, RUN_PACK, SOAK_PACK, in_rehearsal


def test_there_are_four_gates_in_order_and_each_ends_in_judgement_and_report():
    assert list(GATES) == ["G1", "G2", "G3", "G4"]
    for spec in GATES.values():
        declared = spec.steps(parse_plan())
        assert [s.kind for s in declared[-2:]] == [StepKind.JUDGE, StepKind.REPORT]
        assert len({s.key for s in declared}) == len(declared)
        assert all(s.title.en and s.title.zh for s in declared)
        json.dumps([s.params for s in declared])


def test_g3_runs_abba_then_recompute_and_placebo_and_stores_once_an_arm():
    runs = [s for s in GATES["G3"].steps(parse_plan()) if s.kind is StepKind.JOB]
    assert [s.key for s in runs] == ["run-1", "run-2", "run-3", "run-4", "recompute", "placebo"]
    assert [s.params["arm"] for s in runs] == ["baseline", "candidate", "candidate", "baseline", "recompute", "placebo"]
    assert [s.params["store"] for s in runs] == [True, True, False, False, False, False]
    assert [s.params["repeat"] > 0 for s in runs] == [False, False, False, False, True, False]
    assert {s.params["set"] for s in runs[:5]} == {"g3"}
    assert runs[5].params["set"] != "g3"
    assert all(s.expects == {"loadgen": RUN_PACK, ATTENDED: ATTEND_PACK} and s.measured and s.changes_target for s in runs)
    assert runs[0].params["tiers"] == [{"tier": 8, "requests": 104}, {"tier": 16, "requests": 160}, {"tier": 32, "requests": 320}]


def test_g2_has_the_plans_runs_and_the_first_one_stores():
    declared = GATES["G2"].steps(parse_plan({"g2": {"runs": 4}}))
    assert [s.key for s in declared] == ["deploy", "run-1", "run-2", "run-3", "run-4", "judge", "report"]
    assert [s.params.get("store") for s in declared[1:5]] == [True, False, False, False]


@pytest.mark.parametrize(("gate", "keys"), [("G2", ["deploy", "run-1", "run-2", "run-3"]), ("G3", ["deploy", "run-1"]), ("G4", ["deploy", "soak"])])
def test_a_rehearsal_deploys_first_whichever_gate_it_practises_and_is_never_judged(gate, keys):
    steps = in_rehearsal(GATES[gate].steps(parse_plan()))
    assert [s.key for s in steps][: len(keys)] == keys
    assert [s.key for s in steps].count("deploy") == 1
    assert not {StepKind.JUDGE, StepKind.REPORT} & {s.kind for s in steps}


def test_a_rehearsal_of_the_arrival_deploys_nothing():
    assert "deploy" not in {s.key for s in in_rehearsal(GATES["G1"].steps(parse_plan()))}


@pytest.mark.parametrize(("scale", "seconds"), [("1", 259200), ("2880", 90), ("7", 37029)])
def test_only_the_time_of_the_soak_is_scaled(scale, seconds):
    plan = parse_plan({"rig": {"simulated": scale != "1", "time_scale": scale}})
    soak = GATES["G4"].steps(plan)[0]
    assert soak.params["seconds"] == seconds
    assert soak.params["tier"] == 16
    assert soak.timeout_s > seconds
    assert soak.expects == {"loadgen": SOAK_PACK, ATTENDED: ATTEND_PACK}
    assert GATES["G3"].steps(plan)[0].params["tiers"][0]["requests"] == 104


def test_renaming_nothing_but_the_order_changes_only_the_order():
    plan = parse_plan({"arms": {"order": ["candidate", "baseline", "baseline", "candidate"]}})
    assert [s.params["arm"] for s in GATES["G3"].steps(plan)[:4]] == ["candidate", "baseline", "baseline", "candidate"]


def test_no_more_prompts_are_repeated_than_the_first_tier_asks() -> None:
    plan = parse_plan({"workload": {"requests_per_run": {"min": 20, "per_concurrency": 1}, "identity_repeats": 32}})
    recompute = next(step for step in GATES["G3"].steps(plan) if step.key == "recompute")
    assert recompute.params["repeat"] == recompute.params["tiers"][0]["requests"] == 24
