"""Outputs against recompute's: what is no measure proves nothing, and first tokens tell more than whole outputs do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import Evidence, Truth, g3_evidence, small_plan

Row = dict[str, Any]
REPEATS = 16


@functools.cache
def base() -> Evidence:
    return g3_evidence(Truth(), small_plan({"workload": {"identity_repeats": REPEATS}}))


def changed(row: Row, *, head: bool) -> Row:
    return {**row, "output_sha256": row["output_sha256"][::-1], **({"output_head": [" 2"]} if head else {})}


def identity(repeats: Callable[[Row], Row] = lambda row: row, candidate: Callable[[Row], Row] = lambda row: row) -> dict[str, Any]:
    """Return the claim about the candidate; the functions change recompute's repeats and the candidate's answers."""
    evidence = Evidence("G3", base().plan, dict(base().files))
    evidence.lines("recompute", "records.jsonl", lambda rows: [repeats(r) if r["phase"] == "repeat" else r for r in rows])
    for step in ("run-2", "run-3"):
        evidence.lines(step, "records.jsonl", lambda rows: [candidate(r) if r["phase"] == "measure" else r for r in rows])
    document = judge(evidence.bundle())
    claim = next(c for c in document["claims"] if (c["claim"], c["arm"]) == ("output_identity", "candidate"))
    check = next(c for c in document["checks"] if c["id"] == "g3.candidate_output_identity")
    return {**claim, "verdict": document["verdict"], "check": check}


def some(share: float, *, head: bool) -> Callable[[Row], Row]:
    """Change the answers to the first prompts of each tier."""
    return lambda row: changed(row, head=head) if row["prompt"] < share * 24 else row


def first(number: int, *, head: bool = False) -> Callable[[Row], Row]:
    return lambda row: changed(row, head=head) if row["prompt"] < number else row


def test_a_recompute_that_never_reproduces_itself_proves_nothing_of_outputs_that_are_all_wrong():
    found = identity(first(REPEATS), some(1, head=False))
    assert (found["status"], found["verdict"]) == ("unknown", "inconclusive")
    assert "differs from itself in 16 of 16" in found["reason"]["en"]
    assert "deterministic" in found["check"]["change"]["en"]


@pytest.mark.parametrize(("differ", "status"), [(0, "holds"), (3, "holds"), (4, "holds"), (5, "unknown")])
def test_a_noise_floor_is_a_measure_up_to_exactly_the_limit_of_the_plan(differ, status):
    assert identity(first(differ))["status"] == status


def test_first_tokens_beyond_their_own_noise_prove_a_breach_where_whole_outputs_cannot():
    noisy = first(REPEATS)
    assert identity(noisy, some(1, head=True))["status"] == "breached"
    assert identity(noisy, some(1, head=True))["verdict"] == "fail"
    assert identity(first(REPEATS, head=True), some(1, head=True))["status"] == "unknown"


def test_first_tokens_count_under_a_low_floor_too():
    assert identity(first(4), some(0.4, head=True))["status"] == "breached"
    assert identity(first(4), some(0.4, head=False))["status"] == "holds"


def test_where_recompute_reproduces_itself_every_difference_counts():
    found = identity(candidate=some(0.2, head=False))
    assert (found["status"], found["verdict"]) == ("breached", "fail")


def test_a_floor_that_was_never_measured_is_no_floor_of_zero():
    def unrecorded(row: Row) -> Row:
        return {**row, "output_sha256": None}

    assert identity(unrecorded)["status"] == "unknown"
