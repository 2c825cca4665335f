"""The sealed platform is held against the engine that ran, the arms' engines against each other, and G3's engine against G2's."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from gates.plan import parse_plan
from gates.rules.engine import differs_from_plan, framework_of, layout_of, setting_differences, silent
from tests.bundles import small_plan
from tests.bundles.gates import g2_evidence, g3_evidence

VLLM = [
    *("python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/qwen3-coder-480b", "--served-model-name", "qwen3-coder-480b"),
    *("--port", "8000", "--tensor-parallel-size", "8", "--enable-expert-parallel", "--max-num-seqs", "64"),
]
DOCKER = ["docker", "run", "--rm", "--name", "engine", "--env", "A=1", "--entrypoint", "python", "sha256:00"]
ENGINE = {"argv": VLLM, "version": "0.11.0+rocm641", "model": "qwen3-coder-480b", "metrics_names": ["vllm:prompt_tokens_total"], "config": {}}
SEALED = {"accelerator": "MI308X", "framework": "vLLM 0.11", "model": "Qwen3-Coder-480B", "layout": {"tp": 8, "ep": 8, "instances": 1}}


def plan_of(**platform: Any) -> Any:
    return parse_plan({"platform": {**SEALED, **platform}})


def claim(document: dict[str, Any], name: str, arm: str) -> dict[str, Any]:
    return next(c for c in document["claims"] if (c["claim"], c["arm"]) == (name, arm))


def test_an_engine_of_the_sealed_platform_differs_in_nothing_also_in_a_container():
    for argv in (VLLM, [*DOCKER, *VLLM[1:]]):
        assert differs_from_plan(plan_of(), ENGINE | {"argv": argv}) is None
        assert silent(plan_of(), ENGINE | {"argv": argv}) == []


@pytest.mark.parametrize(
    ("platform", "engine", "word"),
    [
        ({}, {"model": "qwen3-30b"}, "platform.model"),
        ({}, {"model": "qwen3-coder-480b-instruct"}, "platform.model"),
        ({}, {"metrics_names": ["sglang:num_running_reqs"]}, "platform.framework"),
        ({}, {"version": "0.10.2"}, "platform.framework"),
        ({"layout": {"tp": 4, "ep": 8, "instances": 2}}, {}, "platform.layout.tp"),
        ({"layout": {"tp": 8, "ep": 1, "instances": 1}}, {}, "platform.layout.ep"),
        ({"model_config_sha256": "a" * 64}, {"model_config_sha256": "b" * 64}, "platform.model_config_sha256"),
    ],
)
def test_each_sealed_fact_that_the_engine_tells_otherwise_is_named(platform, engine, word):
    wrong = differs_from_plan(plan_of(**platform), ENGINE | engine)
    assert word in wrong.en
    assert word in wrong.zh


@pytest.mark.parametrize(
    ("platform", "engine", "word"),
    [
        ({}, {"model": None}, "platform.model"),
        ({}, {"metrics_names": [], "argv": ["/usr/bin/python3", "launch.py"]}, "platform.framework"),
        ({}, {"argv": ["/usr/bin/python3", "launch.py"]}, "platform.layout.tp"),
        ({}, {"version": None}, "platform.version"),
        ({"model_config_sha256": "a" * 64}, {}, "platform.model_config_sha256"),
    ],
)
def test_what_the_engine_does_not_tell_of_the_sealed_platform_is_missing_and_no_difference(platform, engine, word):
    assert word in silent(plan_of(**platform), ENGINE | engine)
    assert differs_from_plan(plan_of(**platform), ENGINE | engine) is None


def test_what_is_null_in_the_plan_was_not_sealed():
    nothing = parse_plan({})
    assert (differs_from_plan(nothing, {}), silent(nothing, {})) == (None, [])


def test_frameworks_and_layouts_are_told_by_command_line_and_metrics():
    assert framework_of({"argv": ["python", "lab_engine.pyz"], "metrics_names": ["vllm:x"]}) == "lab-engine"
    assert framework_of({"argv": ["/opt/bin/vllm", "serve", "/m"]}) == "vllm"
    assert layout_of({"argv": ["/opt/bin/vllm", "serve", "/m", "-tp", "4", "-dp", "2", "--enable-expert-parallel"]}) == {"tp": 4, "ep": 8}
    assert layout_of({"argv": ["python", "-m", "sglang.launch_server", "--tp=8", "--ep-size", "8"]}) == {"tp": 8, "ep": 8}
    assert layout_of({"argv": ["/opt/bin/vllm", "serve", "--config", "engine.yaml"]}) == {}


def test_engines_are_compared_by_command_line_and_configuration_but_for_the_place_and_the_tier():
    other = [*VLLM[:-1], "128", "--kv-transfer-config", "{}"]
    moved = [word.replace("8000", "8001") for word in VLLM]
    assert setting_differences(ENGINE, ENGINE | {"argv": moved}, tier=True) == []
    assert setting_differences(ENGINE, ENGINE | {"argv": other}, tier=False) == ["max_num_seqs"]
    assert setting_differences(ENGINE, ENGINE | {"argv": other}, tier=True) == ["kv_transfer_config", "max_num_seqs"]
    config = {"scheduler": {"policy": "fcfs"}, "tier": {"path": "/a"}}
    assert setting_differences({"config": config}, {"config": {"scheduler": {"policy": "priority"}}}, tier=False) == ["scheduler.policy"]


def test_a_plan_for_one_model_and_an_engine_of_another_is_invalid():
    plan = small_plan({"platform": {"model": "lab-480b"}})
    document = judge(g2_evidence(plan=plan).bundle())
    told = claim(document, "equal_work", "baseline")
    assert (document["verdict"], told["status"]) == ("invalid", "breached")
    assert "the engine's model is lab; the plan sealed lab-480b" in told["reason"]["en"]


def test_an_engine_that_does_not_tell_what_was_sealed_is_inconclusive():
    plan = small_plan({"platform": {"model_config_sha256": "a" * 64}})
    document = judge(g2_evidence(plan=plan).bundle())
    assert (document["verdict"], claim(document, "equal_work", "baseline")["status"]) == ("inconclusive", "unknown")


@pytest.mark.parametrize(("step", "arm"), [("run-2", "candidate"), ("run-4", "baseline"), ("placebo", "placebo"), ("recompute", "recompute")])
def test_an_arm_whose_engine_was_started_otherwise_is_no_equal_work_whatever_arm_json_says(step, arm):
    evidence = g3_evidence()
    for name in ("run-1", "run-2", "run-3", "run-4", "placebo", "recompute"):
        seqs = "128" if name == step else "64"
        evidence.json(name, "engine.json", lambda d, n=seqs: d.update(argv=["lab-engine", "--max-num-seqs", n]))
    told = claim(judge(evidence.bundle()), "equal_work", arm)
    assert told["status"] == "breached"
    assert "max_num_seqs" in told["reason"]["en"]
    assert "engine.json" in told["reason"]["zh-CN"]


def test_the_faults_of_the_simulated_engine_are_no_difference_of_work():
    evidence = g3_evidence()
    for name in ("run-2", "run-3"):
        evidence.json(name, "engine.json", lambda d: d.update(config={"faults": {"slow_tier": 2}, "tier": {"array": {"cache_share": 1}}}))
    assert {c["status"] for c in judge(evidence.bundle())["claims"] if c["claim"] == "equal_work"} == {"holds"}


def test_a_setting_that_the_plan_allows_to_differ_may_differ():
    plan = small_plan(
        {"arms": {"once": ["recompute", "placebo", "baseline_tuned"], "allowed_difference": ["mount_path", "device", "transport", "max_num_seqs"]}}
    )
    evidence = g3_evidence(plan=plan)
    for name in ("run-2", "run-3", "placebo"):
        evidence.json(name, "engine.json", lambda d: d.update(argv=["lab-engine", "--max-num-seqs", "128"]))
    for name in ("run-1", "run-4"):
        evidence.json(name, "engine.json", lambda d: d.update(argv=["lab-engine", "--max-num-seqs", "64"]))
    assert claim(judge(evidence.bundle()), "equal_work", "candidate")["status"] == "holds"


@pytest.mark.parametrize(
    ("engine", "status", "word"), [({"version": "0.9"}, "breached", "the engine's version is 1.0"), (None, "unknown", "judge G2 again")]
)
def test_g3_is_held_against_the_engine_of_the_frozen_g2_baseline(engine, status, word):
    def edit(told: dict[str, Any]) -> None:
        frozen = told["g2_baseline"]
        frozen["engine"] = frozen["engine"] | engine if engine else None

    found = claim(judge(g3_evidence().inputs(edit).bundle()), "g2_agreement", "baseline")
    assert found["status"] == status
    assert word in found["reason"]["en"]
