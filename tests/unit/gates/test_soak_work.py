"""A soak is of the plan's work, on the sealed engine, as its job was told: anything else says nothing about the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Evidence
from tests.unit.gates.breaches_g4 import injection, never_stored, other_engine, other_work, over_a_reboot, told_otherwise
from tests.unit.gates.soaks import load

SEALED = {"model": "lab", "version": "1.0", "argv": ["lab-engine"]}


def judged(evidence: Evidence, claim: str = "equal_work") -> tuple[str, str, str]:
    document = judge(evidence.bundle())
    found = next(c for c in document["claims"] if c["claim"] == claim)
    return found["status"], document["verdict"], found["reason"]["en"]


def check(evidence: Evidence, name: str) -> tuple[str, str, str]:
    document = judge(evidence.bundle())
    found = next(c for c in document["checks"] if c["id"] == f"g4.{name}")
    return found["verdict"], document["verdict"], found["reason"]["en"]


def test_a_soak_of_the_plans_work_on_the_sealed_engine_passes():
    assert judged(other_engine(**SEALED))[:2] == ("holds", "pass")
    assert judged(load(), "store_complete")[:2] == ("holds", "pass")


@pytest.mark.parametrize(
    ("made", "word"),
    [
        (lambda: other_work(max_tokens=8, usage={"completion_tokens": 8}), "output tokens asked for: 8"),
        (lambda: other_work(counted=False, usage={"completion_tokens": 8}), "output tokens of each answer: 8"),
        (lambda: other_work(prompt_tokens_sent=4096, usage={"prompt_tokens": 4096}), "tokens sent for each prompt: 4096"),
        (lambda: other_work(counted=False, tier=2), "requests in flight that they were sent for: 2"),
        (lambda: other_engine(**SEALED | {"model": "a smaller one"}), "platform.model"),
        (lambda: other_engine(**SEALED | {"version": "0.9"}), "platform.framework"),
        (lambda: other_engine(**SEALED, instances=[{**SEALED}, {**SEALED}]), "platform.layout.instances"),
        (lambda: told_otherwise("soak", request_cap=1440), "a cap of 1440 requests"),
        (lambda: told_otherwise("soak", tier=2), "soak.tier 2; the plan says 1"),
        (lambda: told_otherwise("soak", rotate_prefixes=2), "soak.rotate_prefixes 2"),
        (lambda: told_otherwise("soak", sentinel=None), "soak.sentinel"),
        (lambda: told_otherwise("soak", injections=[{"label": "x", "action": "y", "at_s": 1, "seconds": 1}]), "soak.injections"),
        (lambda: told_otherwise("workload", output_tokens=8), "workload.output_tokens 8"),
        (lambda: told_otherwise("workload", set="g3"), "workload.set g3; the plan says g4"),
    ],
)
def test_other_work_or_another_engine_is_no_soak_of_this_product(made: Callable[[], Evidence], word: str):
    status, verdict, reason = judged(made())
    assert status == "breached"
    assert verdict == ("inconclusive" if "workload.set" in word else "invalid")  # of another set: the pack is not this step's
    assert word in reason


@pytest.mark.parametrize("key", ["model", "num_gpu_blocks", "kv_bytes_per_token"])
def test_an_engine_that_does_not_say_what_it_is_proves_nothing(key: str):
    assert judged(other_engine(**SEALED | {key: None}))[:2] == ("unknown", "inconclusive")


@pytest.mark.parametrize(("part", "key"), [("soak", "request_cap"), ("soak", "tier"), ("workload", "output_tokens")])
def test_a_job_that_does_not_say_what_it_was_told_proves_nothing(part: str, key: str):
    def silent(job: dict[str, Any]) -> None:
        del job[part][key]

    status, verdict, reason = judged(load().json("soak", "job.json", silent))
    assert (status, verdict) == ("unknown", "inconclusive")
    assert f"{part}.{key}" in reason


def test_prefixes_that_were_never_stored_breach_the_store_phase():
    assert judged(never_stored(1), "store_complete")[:2] == ("breached", "invalid")
    failed = other_work("store", counted=False, error={"kind": "timeout", "message": "x"})
    assert judged(failed, "store_complete")[:2] == ("breached", "invalid")


@pytest.mark.parametrize(
    ("name", "first", "second", "verdict", "word"),
    [
        ("nvme_media_errors", 0, 3, "fail", "It grew by 3, first at hour"),
        ("nvme_media_errors", 3, 3, "pass", "It stayed at 3"),
        ("nvme_media_errors", 3, 0, "inconclusive", "from 3 back to 0"),
        ("aer_fatal", 0, 3, "inconclusive", "was 3 in the first sample of boot"),
        ("aer_fatal", 3, 0, "pass", "It stayed at 0"),
    ],
)
def test_what_a_counter_says_over_a_reboot_is_held_against_what_it_said_before(name: str, first: int, second: int, verdict: str, word: str):
    found = check(over_a_reboot(name, first, second), f"counter_{name}")
    assert found[:2] == (verdict, verdict)
    assert word in found[2]


@pytest.mark.parametrize(("name", "first", "second", "grown"), [("nvme_error_entries", 7, 9, 2), ("ecc_corrected", 7, 3, 3)])
def test_what_mends_itself_is_told_with_its_growth_over_a_reboot(name: str, first: int, second: int, grown: int):
    assert f"It grew by {grown}," in check(over_a_reboot(name, first, second), f"watched_{name}")[2]


def test_an_injection_more_than_was_agreed_excuses_nothing():
    found = check(injection(hours=(5, 8)), "evidence")
    assert found[:2] == ("inconclusive", "inconclusive")
    assert "the injection pull 2 times; the plan has it 1 times" in found[2]


@pytest.mark.parametrize(("hour", "verdict"), [(3, "inconclusive"), (4, "pass"), (5, "pass"), (7, "inconclusive")])
def test_an_injection_that_comes_more_than_a_window_from_its_hour_shows_nothing(hour: int, verdict: str):
    found = check(injection(hours=(hour,)), "injection_1")
    assert found[:2] == (verdict, verdict)
    assert verdict == "pass" or f"It began at hour {hour}.01 of the load, and hour 5 was agreed" in found[2]
