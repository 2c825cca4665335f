"""Outputs against recompute's: what is no measure proves nothing, and first tokens tell more than whole outputs do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from scipy.stats import binomtest

from gates.judge import judge
from gates.model import Verdict
from gates.odds.identity import Engine, identity_shares
from gates.plan import parse_plan
from gates.rules.outputs import Divergence, repeats_needed, wilson
from tests.bundles import Evidence, Truth, g3_evidence, small_plan

Row = dict[str, Any]
REPEATS = 16
LIMIT = Decimal("0.01")


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


@pytest.mark.parametrize(("differ", "status"), [(3, "holds"), (4, "holds"), (5, "unknown")])
def test_a_noise_floor_is_a_measure_up_to_exactly_the_limit_of_the_plan(differ, status):
    assert identity(first(differ), some(0.4, head=False))["status"] == status


@pytest.mark.parametrize("differ", [0, 5, REPEATS])
def test_outputs_that_are_all_recomputes_need_no_noise_to_explain_them(differ):
    assert identity(first(differ))["status"] == "holds"


def test_few_repeats_prove_neither_noise_nor_a_breach_and_the_reason_says_how_many_would():
    found = identity(candidate=some(0.09, head=True))  # 3 of 24, where none of 16 may be up to one in seven
    assert (found["status"], found["verdict"]) == ("unknown", "inconclusive")
    assert "between 0.00 % and 14.46 %" in found["reason"]["en"]
    assert "asks 70 prompts again" in found["check"]["change"]["en"]


def test_an_engine_with_noise_is_believed_only_within_the_noise_of_its_first_tokens():
    assert identity(first(3), some(0.3, head=False))["status"] == "holds"
    assert identity(first(3), some(0.12, head=True))["status"] == "unknown"  # 3 of 24: none of its own first tokens differed, in 16


@pytest.mark.parametrize(("hits", "n"), [(0, 32), (1, 32), (16, 16), (40, 96)])
def test_the_bounds_of_a_share_are_those_of_wilson(hits, n):
    sides = binomtest(hits, n).proportion_ci(0.9, "wilson")  # both sides at once, each at 95 %
    assert [float(bound) for bound in wilson(hits, n)] == pytest.approx([sides.low, sides.high], abs=2e-6)


@pytest.mark.parametrize("found", [Divergence(10, 104, 0, 32), Divergence(20, 160, 1, 32), Divergence(16, 104, 1, 32)])
def test_as_many_repeats_as_are_asked_for_do_decide_and_fewer_do_not(found):
    def decided(n):
        more = replace(found, base=round(found.floor * n), repeats=n)
        return more.surely_beyond > LIMIT or more.perhaps_beyond <= LIMIT

    n = repeats_needed(found, LIMIT)
    assert n is not None
    assert n > found.repeats
    assert (decided(n), decided(found.repeats)) == (True, False)


def test_no_number_of_repeats_is_asked_for_where_none_would_decide():
    assert repeats_needed(Divergence(4, 200, 1, 100), LIMIT) is None  # one per cent beyond the noise: just at the limit, from whichever side


def test_first_tokens_beyond_their_own_noise_prove_a_breach_where_whole_outputs_cannot():
    noisy = first(REPEATS)
    assert identity(noisy, some(1, head=True))["status"] == "breached"
    assert identity(noisy, some(1, head=True))["verdict"] == "fail"
    assert identity(first(REPEATS, head=True), some(1, head=True))["status"] == "unknown"


def test_first_tokens_count_under_a_low_floor_too():
    assert identity(first(4), some(0.4, head=True))["status"] == "breached"
    assert identity(first(4), some(0.4, head=False))["status"] == "holds"


def test_where_recompute_reproduces_itself_every_difference_counts():
    found = identity(candidate=some(0.4, head=False))
    assert (found["status"], found["verdict"]) == ("breached", "fail")


def test_a_floor_that_was_never_measured_is_no_floor_of_zero():
    def unrecorded(row: Row) -> Row:
        return {**row, "output_sha256": None}

    assert identity(unrecorded)["status"] == "unknown"


def test_a_sound_candidate_hardly_ever_fails_for_the_engines_noise_and_a_damaged_one_never_passes():
    plan = parse_plan({})
    for noise in (0.0, 0.005, 0.02, 0.1):
        assert identity_shares(plan, Engine(noise, noise / 10), trials=100)[Verdict.FAIL] <= 0.07
        assert identity_shares(plan, Engine(noise, noise / 10), damaged=0.2, trials=100)[Verdict.PASS] == 0
