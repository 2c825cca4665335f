"""Cells of several engine hosts: each is measured on each, told by its name, and none is left out or borrowed from another."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gates import g3_main
from gates.judge import judge
from gates.rules.attend_account import digest
from tests.bundles.apart import BOOTS, ENGINE_HOST, SECOND_HOST, put_apart
from tests.bundles.evidence import Evidence, journal
from tests.bundles.gates import g3_evidence
from tests.bundles.truth import Truth, small_plan
from tests.unit.gates.test_several_engine_hosts import SEALED

BOTH = (ENGINE_HOST, SECOND_HOST)
SIZE, SECOND = 8 * 10**9, 10**9
Row = dict[str, Any]


def measured(evidence: Evidence, step: str, seconds: dict[str, int], edit: Callable[[list[Row]], Any] | None = None) -> None:
    """Let a run have a read of the tier on each host, and each host's account bear it out; `edit` changes what the driver says."""
    rows: list[Row] = []
    for n, (host, took) in enumerate(seconds.items()):
        answer = {"cold": True, "bytes": SIZE, "started_ns": 10**9, "ended_ns": 10**9 + took * SECOND}
        stamp = {"mono_ns": 10**15 + n, "boot_id": BOOTS[host]}
        on = {"host": host, "wall_ns": 10**18, **stamp, "asked_ns": 1, "answered_ns": 2}
        rows.append({"cell": "tier_read", "host": host, "wall_ns": 1, "mono_ns": 1, "boot_id": "x", **answer, "on": on})
        path = f"evidence/{step}/{host}/asked.jsonl"
        told = [json.loads(line) for line in evidence.files[path].decode().splitlines()]
        told.append({**stamp, "wall_ns": 10**18, "verb": "cell", "error": None, "sha256": digest(answer)})
        evidence.files[path] = "".join(json.dumps({**row, "seq": k}) + "\n" for k, row in enumerate(told)).encode()
    if edit:
        edit(rows)
    evidence.files[evidence.path(step, "cells.jsonl")] = journal(rows)
    cells = [{"cell": "tier_read", "bytes": SIZE}]

    def given(data: Row) -> None:
        data["cells"] = cells
        for row in data["attendants"]:
            row["cells"] = cells

    evidence.json(step, "job.json", given)
    for host in seconds:
        path = f"evidence/{step}/{host}/job.json"
        evidence.files[path] = json.dumps({**json.loads(evidence.files[path]), "cells": cells}).encode()


def judged(edit: Callable[[list[Row]], Any] | None = None, slow: int = 4) -> dict[str, Any]:
    plan = small_plan({**SEALED, "g3": {"optional": {"tier_read_bandwidth": "advisory"}}})
    evidence = g3_evidence(Truth(), plan)
    steps = g3_main.steps(plan)
    put_apart(evidence, steps, BOTH)
    runs = [(step.key, step.params["arm"]) for step in steps if "arm" in step.params and step.params["arm"] in ("baseline", "candidate")]
    last = [key for key, arm in runs if arm == "candidate"][-1]
    for key, arm in runs:
        seconds = dict.fromkeys(BOTH, 8) if arm == "baseline" else {ENGINE_HOST: 2, SECOND_HOST: slow}
        measured(evidence, key, seconds, edit if key == last else None)
        evidence.repack(key)
    return judge(evidence.bundle())


def told(document: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in document["checks"] if row["id"] == "g3.tier_read_bandwidth")


def test_the_slower_host_is_told_by_its_name() -> None:
    document = judged()
    row = told(document)
    assert (document["verdict"], row["verdict"], row["host"]) == ("pass", "pass", SECOND_HOST), row["reason"]
    assert row["reason"]["en"].startswith(f"{SECOND_HOST}: 2.000 GB/s, 2.000 times the baseline's")


def gone(rows: list[Row]) -> None:
    del rows[1]


def borrowed(rows: list[Row]) -> None:
    """Let the first host's answer stand for the second's too."""
    rows[1] = {**rows[0], "host": SECOND_HOST}


def faster(rows: list[Row]) -> None:
    rows[1]["ended_ns"] = rows[0]["ended_ns"]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (gone, f"the cell tier_read is not on record of {SECOND_HOST} exactly once"),
        (borrowed, f"the cell tier_read is not on record of {SECOND_HOST} exactly once"),
        (faster, f"the cell tier_read is not what {SECOND_HOST} measured"),
    ],
)
def test_a_cell_that_a_host_does_not_bear_out_leaves_the_evidence_incomplete(edit: Callable[[list[Row]], Any], words: str) -> None:
    document = judged(edit)
    assert document["verdict"] not in ("pass", "conditional")
    assert words in next(row for row in document["checks"] if row["id"] == "g3.evidence")["reason"]["en"]
