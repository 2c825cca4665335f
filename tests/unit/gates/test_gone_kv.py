"""KV that is gone before it is measured: losing all of it stands no better than losing a part, and an empty directory alone proves nothing."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import g3_evidence
from tests.unit.gates.breaches import moved

Row = dict[str, Any]


def attempt(step: str, *, stored: int | None, recovered: bool = False, resident: int = 0) -> dict[str, Any]:
    """Judge a G3 in which the directory of a candidate's run held nothing from its cooling on; `stored`: bytes in it after the store phase."""
    evidence = g3_evidence()

    def store(rows: list[Row]) -> None:
        for row in rows:
            if row["phase"] == "store":
                row.setdefault("detail", {})["kv_after"] = {"files": 9, "bytes": stored}

    def emptied(rows: list[Row]) -> None:
        for row in rows:
            row.update(bytes=0, files=0, resident_bytes=resident)

    def lost(rows: list[Row]) -> None:
        for row in rows:
            if not recovered:
                moved(row, "external_kv_transfer", "local_compute", 1)

    evidence.lines("run-2", "phases.jsonl", store)
    evidence.lines(step, "coldness.jsonl", emptied)
    evidence.lines(step, "counters.jsonl", lost)
    document: dict[str, Any] = judge(evidence.bundle())
    return document


def cold(document: dict[str, Any]) -> dict[str, Any]:
    return next(c for c in document["claims"] if (c["claim"], c["arm"]) == ("page_cache_cold", "candidate"))


@pytest.mark.parametrize("step", ["run-2", "run-3"])
def test_kv_that_was_stored_and_is_gone_to_the_last_byte_is_the_products_fail(step: str) -> None:
    document = attempt(step, stored=10**9)
    assert (document["verdict"], cold(document)["status"]) == ("fail", "holds"), document["summary"]["en"]
    assert "external tier" in next(c for c in document["claims"] if (c["claim"], c["arm"]) == ("external_hits", "candidate"))["reason"]["en"]


@pytest.mark.parametrize(
    "known",
    [{"stored": None}, {"stored": 0}, {"stored": 10**9, "recovered": True}, {"stored": 10**9, "resident": 4096}],
    ids=lambda known: ", ".join(known),
)
def test_an_empty_directory_without_that_proof_is_unknown_and_never_a_pass(known: dict[str, Any]) -> None:
    document = attempt("run-2", **known)
    assert (document["verdict"], cold(document)["status"]) == ("inconclusive", "unknown")
