"""What could not be proven is refused before the first run, not found out after the last: a cold array needs the array's own statistics."""

from __future__ import annotations

from typing import Any

import pytest

from app.engagements.cold_proof import refusal
from gates.plan import Plan, parse_plan

ARMS = {"baseline": {"mount_path": "/mnt/nfs"}, "candidate": {"mount_path": "/mnt/array"}, "recompute": {}, "placebo": {"mount_path": "/mnt/array"}}
BOTH = {"/mnt/nfs": "http://nfs01:9301/", "/mnt/array": "/srv/array.json"}


def plan(**arms: Any) -> Plan:
    return parse_plan({"arms": {"array_cache": "cold", **arms}})


def targets(kind: str = "vllm", stats: Any = None) -> dict[str, Any]:
    return {"engine": {"kind": kind} | ({"array_stats": stats} if stats is not None else {}), "arms": ARMS}


@pytest.mark.parametrize(
    ("gate", "stats", "media"),
    [
        ("G3", None, "/mnt/nfs, /mnt/array"),
        ("G3", {"/mnt/array": "/srv/array.json"}, "/mnt/nfs"),
        ("G3", {"/mnt/array": "", "/mnt/nfs": "x"}, "/mnt/array"),
        ("G3", "/srv/array.json", "/mnt/nfs, /mnt/array"),
        ("G2", None, "/mnt/nfs"),
    ],
)
def test_each_medium_without_statistics_is_named_in_both_languages(gate, stats, media):
    told = refusal(plan(), gate, targets(stats=stats))
    assert told is not None
    assert (f"names no statistics for {media}." in told.en, f"未给出 {media} 的统计" in told.zh) == (True, True)


@pytest.mark.parametrize("gate", ["G1", "G2", "G3", "G4"])
def test_where_all_is_named_or_nothing_needs_it_the_gate_can_begin(gate):
    assert refusal(plan(), gate, targets(stats=BOTH)) is None
    assert refusal(parse_plan({}), gate, targets()) is None
    assert refusal(plan(), gate, targets(kind="lab")) is None


def test_an_engine_that_stands_on_no_array_is_told_so():
    told = refusal(plan(), "G3", targets(kind="vllm_cpu"))
    assert told is not None
    assert "vllm_cpu stands on no array" in told.en


def test_only_gates_that_judge_the_claim_are_refused():
    assert refusal(plan(), "G1", targets()) is None
    assert refusal(plan(), "G4", targets()) is None
