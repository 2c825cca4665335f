"""The harm that the properties try is the harm that it is said to be, and some of it that once passed."""

from __future__ import annotations

import pytest

from gates.judge import judge
from tests.bundles.evidence import Evidence
from tests.unit.gates import breaches, breaches_g4
from tests.unit.gates.damage import NOT_GOOD, damaged, fields, in_another_unit, verdict, without
from tests.unit.gates.shared_reading import HASH, judged


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
    for factor in (8, 1000):
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


def test_packs_that_are_read_once_are_judged_as_if_they_were_read_each_time() -> None:
    good, bad = breaches.good(), breaches.g3("hits")
    harmed = damaged(bad, bad.path("run-3", "records.jsonl"), "drop a key", 0.5)
    soak = breaches_g4.load()
    torn = damaged(soak, soak.path("soak", "telemetry.jsonl"), "truncate", 0.5)
    for evidence in (good, bad, harmed, bad, good, soak, torn, torn, soak):
        assert judged(evidence) == {**judge(evidence.bundle()), "manifest_hash": HASH}


def test_evidence_that_was_harmed_is_a_copy() -> None:
    evidence: Evidence = breaches.g3("hits")
    before = dict(evidence.files)
    damaged(evidence, next(iter(evidence.files)), "remove", 0.5)
    assert evidence.files == before
