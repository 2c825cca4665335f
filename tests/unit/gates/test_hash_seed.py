"""KV that was stored under one PYTHONHASHSEED and asked for under another cannot be found: the rig's fault, never the product's."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from tests.bundles import g3_evidence


def judged(stored: Any, measured: Any, step: str = "run-2") -> dict[str, Any]:
    """Judge a G3 whose candidate stored in run-2 under one seed and was measured in a run under another; None: nobody could read it."""
    evidence = g3_evidence()

    def store(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["phase"] == "store":
                row.setdefault("detail", {})["hash_seed"] = stored

    evidence.lines("run-2", "phases.jsonl", store)
    evidence.json(step, "engine.json", lambda row: row.update(hash_seed=measured))
    document: dict[str, Any] = judge(evidence.bundle())
    return document


@pytest.mark.parametrize(("stored", "measured", "step"), [("0", "7", "run-2"), ("0", "7", "run-3"), ("", "0", "run-2"), ("0", "", "run-3")])
def test_another_hash_seed_than_that_of_the_store_phase_is_invalid_and_named(stored: str, measured: str, step: str) -> None:
    document = judged(stored, measured, step)
    told = next(c for c in document["claims"] if (c["claim"], c["arm"]) == ("equal_work", "candidate"))
    assert (document["verdict"], told["status"], told["attribution"], told["run"]) == ("invalid", "breached", "rig", step)
    for language in ("en", "zh-CN"):
        assert "PYTHONHASHSEED" in told["reason"][language]
        assert all(seed in told["reason"][language] for seed in (stored, measured) if seed)
    assert "not set" in told["reason"]["en"] or (stored and measured)


@pytest.mark.parametrize(("stored", "measured"), [("0", "0"), ("", ""), (None, "0"), ("0", None), (None, None)])
def test_the_same_seed_and_one_that_nobody_could_read_are_no_difference(stored: str | None, measured: str | None) -> None:
    assert judged(stored, measured)["verdict"] == "pass"
