"""No removal of evidence makes an attempt pass that did not: fail, invalid and inconclusive ones, one for each claim and each fault of an arrival."""

from __future__ import annotations

import functools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bundles.evidence import Evidence
from tests.unit.gates import breaches, breaches_g4
from tests.unit.gates.damage import FACTORS, FACTORS, HOWS, damaged, fields, in_another_unit, verdict, without

BOUNDED = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SOME = settings(BOUNDED, max_examples=40)
A_FEW = settings(BOUNDED, max_examples=25)  # a soak takes long to judge
NOT_GOOD = ("fail", "inconclusive", "invalid", "unreadable")
MAIN, BASE = (*breaches.G3, *breaches.TRUTHS), (*breaches.G2, *breaches.G2_TRUTHS)
main_gate, arrival, soak = functools.cache(breaches.g3), functools.cache(breaches.g1), functools.cache(breaches_g4.g4)
baseline, conditional = functools.cache(breaches.g2), functools.cache(breaches.conditional)


@pytest.mark.parametrize("name", MAIN)
def test_the_main_gates_that_are_harmed_here_do_not_pass(name: str) -> None:
    assert verdict(main_gate(name)) in NOT_GOOD


@pytest.mark.parametrize("name", BASE)
def test_the_baselines_that_are_harmed_here_do_not_pass(name: str) -> None:
    assert verdict(baseline(name)) in NOT_GOOD


@pytest.mark.parametrize("name", breaches.CONDITIONAL)
def test_the_conditional_main_gates_that_are_harmed_here_are_conditional(name: str) -> None:
    assert verdict(conditional(name)) == "conditional"


@pytest.mark.parametrize("fault", breaches.RACK)
def test_the_arrivals_that_are_harmed_here_do_not_pass(fault: str) -> None:
    assert verdict(arrival(fault)) in NOT_GOOD


@pytest.mark.parametrize("name", breaches_g4.G4)
def test_the_soaks_that_are_harmed_here_do_not_pass(name: str) -> None:
    assert verdict(soak(name)) in NOT_GOOD


def test_the_gates_that_nothing_is_wrong_with_pass() -> None:
    assert verdict(breaches.good()) == "pass"
    assert verdict(breaches.good_g2()) == "pass"
    assert verdict(breaches_g4.load()) == "pass"
    assert verdict(breaches_g4.injection()) == "pass"


@given(
    data=st.data(),
    name=st.sampled_from(MAIN),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@BOUNDED
def test_no_harm_makes_a_main_gate_pass_that_did_not(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = main_gate(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD


@given(
    data=st.data(),
    name=st.sampled_from(BASE),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@SOME
def test_no_harm_makes_a_baseline_pass_that_did_not(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = baseline(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD


@given(
    data=st.data(),
    name=st.sampled_from(sorted(breaches.CONDITIONAL)),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@SOME
def test_no_harm_makes_a_main_gate_pass_that_was_conditional(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = conditional(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) != "pass"


@given(data=st.data(), fault=st.sampled_from(breaches.RACK), how=st.sampled_from(HOWS), where=st.floats(0, 0.999), up=st.booleans())
@BOUNDED
def test_no_harm_makes_an_arrival_pass_that_did_not(data, fault: str, how: str, where: float, up: bool) -> None:
    evidence = arrival(fault)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, 1000, up=up)) in NOT_GOOD


@given(
    data=st.data(),
    name=st.sampled_from(sorted(breaches_g4.G4)),
    how=st.sampled_from(HOWS),
    where=st.floats(0, 0.999),
    factor=st.sampled_from(FACTORS),
    up=st.booleans(),
)
@A_FEW
def test_no_harm_makes_a_soak_pass_that_did_not(data, name: str, how: str, where: float, factor: int, up: bool) -> None:
    evidence = soak(name)
    path = data.draw(st.sampled_from(sorted(evidence.files)))
    assert verdict(damaged(evidence, path, how, where, factor, up=up)) in NOT_GOOD


def test_a_key_is_taken_everywhere_or_in_one_row() -> None:
    data = b'{"a":{"b":1},"l":[{"c":1},{"c":2}]}\n{"a":{"b":2}}\n'
    assert without(data, ("a", "b")) == b'{"a":{},"l":[{"c":1},{"c":2}]}\n{"a":{}}\n'
    assert without(data, ("a", "b"), 1) == b'{"a":{"b":1},"l":[{"c":1},{"c":2}]}\n{"a":{}}\n'
    assert without(data, ("l", "*")) == b'{"a":{"b":1},"l":[{"c":2}]}\n{"a":{"b":2}}\n'
    assert without(data, ("l", "*", "c"), 0) == b'{"a":{"b":1},"l":[{},{}]}\n{"a":{"b":2}}\n'


def test_counters_that_come_as_text_are_numbers_and_take_another_unit() -> None:
    evidence = breaches.good()
    path = evidence.path("run-2", "counters.jsonl")
    stored = next(name for name in fields(evidence.files[path]) if "store_bytes" in name)
    before, after = (
        [row["metrics"][stored.removeprefix("/metrics/")] for row in e.rows("run-2", "counters.jsonl")]
        for e in (evidence, in_another_unit(evidence, path, stored, 1024, up=True))
    )
    assert [float(a) for a in after] == [1024 * float(b) for b in before]
    assert any(float(a) for a in after)
    assert verdict(in_another_unit(evidence, path, stored, 1024, up=True)) in NOT_GOOD


@pytest.mark.parametrize("name", ["page cache", "page cache of one check", "page cache of one directory"])
@pytest.mark.parametrize("field", ["/bytes", "/resident_bytes", "/pages", "/resident_pages", "/page_bytes"])
def test_a_warm_page_cache_is_not_made_cold_by_another_unit(name: str, field: str) -> None:
    evidence = breaches.g3(name)
    for factor in FACTORS:
        for up in (True, False):
            changed = in_another_unit(evidence, evidence.path("run-2", "coldness.jsonl"), field, factor, up=up)
            assert verdict(changed) in NOT_GOOD, (factor, up)


@pytest.mark.parametrize("where", [0, 0.5, 0.9], ids=["stored", "warm-up", "measured"])
def test_a_row_that_stands_twice_is_counted_and_numbered(where: float) -> None:
    evidence = breaches.good()
    path = evidence.path("run-2", "records.jsonl")
    twice = damaged(evidence, path, "double a row", where)
    rows = twice.rows("run-2", "records.jsonl")
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert twice.read("run-2", "exit.json")["records"] == len(rows) == len(evidence.rows("run-2", "records.jsonl")) + 1
    assert verdict(twice) in NOT_GOOD


def test_evidence_that_was_harmed_is_a_copy() -> None:
    evidence: Evidence = main_gate("hits")
    before = dict(evidence.files)
    damaged(evidence, next(iter(evidence.files)), "remove", 0.5)
    assert evidence.files == before
