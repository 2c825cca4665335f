"""A file of one run put in the place of the same file of another run of the attempt: nothing of it may pass."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest

from gates.judge import judge
from gates.steps import RUN_PACK
from tests.bundles import g2_evidence, g3_evidence, g4_evidence, soak_plan
from tests.bundles.evidence import Evidence

NAMED = ("job.json", "exit.json", "engine.json", "client.json", "workload.json", "pack.json")
GOOD = ("pass", "conditional")
ALIKE = {"arm.json"}  # it is the job's own configuration and no more: that of another run of the arm is the same, byte for byte


@functools.cache
def main_gate() -> Evidence:
    return g3_evidence()


def judged(evidence: Evidence) -> dict[str, Any]:
    return judge(evidence.bundle())


def said(document: dict[str, Any], gate: str) -> str:
    return str(next(c["reason"]["en"] for c in document["checks"] if c["id"] == f"{gate}.evidence"))


def test_the_main_gate_whose_files_are_swapped_here_passes() -> None:
    assert judged(main_gate())["verdict"] == "pass"


@pytest.mark.parametrize("source", ["run-1", "run-3", "recompute"])
@pytest.mark.parametrize("name", [name for name in RUN_PACK if name not in ALIKE])
def test_a_file_of_another_run_of_the_attempt_keeps_a_main_gate_from_passing(name: str, source: str) -> None:
    evidence = copy.deepcopy(main_gate())
    evidence.files[evidence.path("run-2", name)] = evidence.files[evidence.path(source, name)]
    if name != "pack.json":
        evidence.repack("run-2")
    document = judged(evidence)
    assert document["verdict"] not in GOOD
    if name in NAMED:
        assert f"run-2/gpu01/{name}" in said(document, "g3") or document["verdict"] == "fail"


def test_the_configuration_of_another_run_of_the_arm_is_the_same_file() -> None:
    evidence = main_gate()
    assert evidence.files[evidence.path("run-2", "arm.json")] == evidence.files[evidence.path("run-3", "arm.json")]


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("step", ["run-1", "run-2", "recompute", "placebo"])
def test_a_document_that_names_no_job_is_inconclusive_and_named(name: str, step: str) -> None:
    """So a bundle from before the documents named their job is no pass."""
    evidence = copy.deepcopy(main_gate()).json(step, name, lambda d: d.pop("job") and None, repack=name != "pack.json")
    document = judged(evidence)
    assert document["verdict"] == "inconclusive"
    assert f"evidence/{step}/gpu01/{name} does not say of which job it is, so it may be of another run" in said(document, "g3")


@pytest.mark.parametrize("name", [name for name in NAMED if name != "job.json"])
def test_a_document_of_an_earlier_try_of_the_same_step_is_told(name: str) -> None:
    """A job that came to nothing is followed by another with a number behind its id; their files must not be mixed."""
    evidence = copy.deepcopy(main_gate()).json("run-2", name, lambda d: d.update(job=f"{d['job']}.2"), repack=name != "pack.json")
    assert f"run-2/gpu01/{name} is of another job than" in said(judged(evidence), "g3")


def test_a_whole_pack_of_a_later_try_passes() -> None:
    evidence = copy.deepcopy(main_gate())
    for name in NAMED:
        evidence.json("run-2", name, lambda d: d.update(job=f"{d['job']}.2"), repack=False)
    assert judged(evidence)["verdict"] == "pass"


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("odd", [1, True, ["x"], {}, "", "0193-attempt-run-20", "0193-attempt-run-2.1"])
def test_what_is_no_job_of_this_step_is_none(name: str, odd: Any) -> None:
    evidence = copy.deepcopy(main_gate()).json("run-2", name, lambda d: d.update(job=odd), repack=name != "pack.json")
    assert judged(evidence)["verdict"] == "inconclusive"


@pytest.mark.parametrize("name", NAMED)
def test_a_document_that_is_an_empty_object_is_none(name: str) -> None:
    evidence = copy.deepcopy(main_gate()).json("run-2", name, lambda _: {}, repack=name != "pack.json")
    assert judged(evidence)["verdict"] not in GOOD


@pytest.mark.parametrize("name", NAMED)
def test_baseline_and_soak_hold_it_too(name: str) -> None:
    for evidence, step, gate in ((g2_evidence(), "run-1", "g2"), (g4_evidence(plan=soak_plan()), "soak", "g4")):
        assert judged(evidence)["verdict"] == "pass"
        evidence.json(step, name, lambda d: d.pop("job") and None, repack=name != "pack.json")
        document = judged(evidence)
        assert document["verdict"] == "inconclusive"
        assert "does not say of which job it is" in said(document, gate)
