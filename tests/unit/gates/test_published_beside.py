"""The other published claims: told from cells, for information, and beside the published figure on an equal platform only; the KV volume of G2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gates.g3.published import published, with_published
from gates.judge import judge
from gates.plan import parse_plan
from gates.text import Text
from tests.bundles import Truth, g2_evidence, g3_evidence, small_plan
from tests.bundles.evidence import Evidence, dumped, journal
from tests.unit.rack.argv import argv_of

TINY = {
    "workload": {"tiers": [2], "requests_per_run": {"min": 20, "per_concurrency": 1}, "identity_repeats": 2, "warmup_requests": 1},
    "g3": {"ttft_p50_drop_min": {"tiers": [2]}, "throughput_gain_band": {"tiers": [2]}},
    "g4": {"tier": 2},
}
SAME = {"accelerator": "MI308X", "count": 8, "framework": "vllm 0.20.1", "model": "qwen3-coder-480b-fp8"}
FIXTURES = Path(__file__).parents[1] / "readers/fixtures"


READ = {"disk_before": {"read_sectors": 7}, "disk_after": {"read_sectors": 7 + 5_230_000_000 // 512 + 1}, "nfs_before": None, "nfs_after": None}


def with_cells(evidence: Evidence, *, seconds: dict[str, float], cold: bool = True, **counted: Any) -> Evidence:
    for run, arm in (("run-1", "baseline"), ("run-2", "candidate"), ("run-3", "candidate"), ("run-4", "baseline")):
        ns = int(seconds[arm] * 10**9)
        rows = [
            {"cell": cell, "started_ns": 10**9, "ended_ns": 10**9 + ns, "bytes": 5_230_000_000, "cold": cold, "boot_id": "b", **READ, **counted}
            for cell in ("model_load", "checkpoint", "tier_read")
        ]
        evidence.files[evidence.path(run, "cells.jsonl")] = journal(rows)
        evidence.repack(run)
    return evidence


def checks(evidence: Evidence) -> dict[str, dict]:
    document = judge(evidence.bundle())
    return {c["id"]: c for c in document["checks"]} | {"verdict": document["verdict"], "not_tested": document["not_tested"]}


def test_cells_are_told_for_information_and_decide_nothing():
    found = checks(with_cells(g3_evidence(Truth(), small_plan(TINY)), seconds={"baseline": 6.17, "candidate": 1.0}))
    load, read = found["g3.model_load_speedup"], found["g3.tier_read_bandwidth"]
    assert (load["value"], load["severity"], load["verdict"]) == ("6.170", "advisory", "pass")
    assert (read["value"], read["unit"]) == ("5230000000", "B/s")
    assert found["verdict"] == checks(g3_evidence(Truth(), small_plan(TINY)))["verdict"]


def test_without_a_cell_the_claim_stands_under_not_tested_and_a_warm_one_is_inconclusive():
    names = {n.get("check") for n in checks(g3_evidence(Truth(), small_plan(TINY)))["not_tested"]}
    assert {"g3.model_load_speedup", "g3.checkpoint_speedup", "g3.tier_read_bandwidth"} <= names
    warm = checks(with_cells(g3_evidence(Truth(), small_plan(TINY)), seconds={"baseline": 6.17, "candidate": 1.0}, cold=False))
    assert warm["g3.model_load_speedup"]["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("counted", "shown"),
    [
        ({"disk_after": {"read_sectors": 1_000_000}}, False),  # the engine loaded from somewhere else, or from memory
        ({"disk_after": None}, False),
        ({"disk_after": {}}, False),
        ({"disk_before": None, "disk_after": None}, True),  # nothing below it counts
        ({"disk_before": None, "disk_after": None, "nfs_before": {"server_read_bytes": 1}, "nfs_after": {"server_read_bytes": 5_230_000_001}}, True),
        ({"disk_before": None, "disk_after": None, "nfs_before": {"server_read_bytes": 1}, "nfs_after": {"server_read_bytes": 9}}, False),
    ],
)
def test_a_model_load_is_shown_where_as_many_bytes_were_read_as_the_weights_have(counted, shown):
    load = checks(with_cells(g3_evidence(Truth(), small_plan(TINY)), seconds={"baseline": 6.17, "candidate": 1.0}, **counted))[
        "g3.model_load_speedup"
    ]
    assert (load["verdict"] == "pass", load["value"] is not None) == (shown, shown)


def test_a_published_figure_stands_beside_the_measured_one_on_an_equal_platform_only():
    told = with_published(parse_plan({"platform": SAME}), "recompute_speedup", Text("12 x.", "12 倍。"), 16)
    assert told.en == "12 x. Published for this platform: 12.62x (R2)."
    assert "同平台公开值" in told.zh
    other = with_published(parse_plan({"platform": {**SAME, "model": "another"}}), "recompute_speedup", Text("12 x.", "12 倍。"), 16)
    assert other == Text("12 x.", "12 倍。")


@pytest.mark.parametrize(
    ("platform", "rig"),
    [
        ({**SAME, "accelerator": "MI300X"}, {}),
        ({**SAME, "count": 4}, {}),
        ({**SAME, "framework": "sglang"}, {}),
        ({**SAME, "framework": "vllm 0.11"}, {}),
        ({**SAME, "framework": None}, {}),
        ({**SAME, "model": "another"}, {}),
        ({**SAME, "model": None}, {}),
        ({**SAME, "accelerator": None}, {}),
        ({**SAME, "layout": {"tp": 4, "ep": 1, "instances": 2}}, {}),
        ({**SAME, "layout": {"tp": 8, "ep": 8, "instances": 1}}, {}),
        (SAME, {"rig": {"simulated": True}}),
    ],
)
def test_another_platform_or_a_simulated_one_has_no_published_figure(platform, rig):
    assert published(parse_plan({"platform": platform, **rig}), "recompute_speedup", 16) is None


@pytest.mark.parametrize("claim", ["tier_read_bandwidth", "checkpoint_speedup", "model_load_speedup"])
def test_a_publication_that_does_not_state_model_or_layout_stands_beside_no_plan(claim):
    for model in ("qwen3-coder-480b-fp8", "32B"):
        for platform in (SAME, {**SAME, "count": 1}, {**SAME, "accelerator": "910B"}):
            assert published(parse_plan({"platform": {**platform, "model": model}}), claim) is None


def test_the_figure_against_recompute_holds_for_its_model_and_its_concurrency_only():
    assert published(parse_plan({"platform": SAME}), "recompute_speedup", 16) == ("12.62x", "R2")
    assert published(parse_plan({"platform": {**SAME, "framework": "vLLM"}}), "recompute_speedup", 16) == ("12.62x", "R2")
    assert published(parse_plan({"platform": SAME}), "recompute_speedup", 8) is None


MEMBER = "       3     259        3        3      active sync   /dev/nvme3n1\n"
REMOVED = {MEMBER: "       -       0        0        3      removed\n"}


def with_volume(edit: dict[str, str] | None = None) -> Evidence:
    evidence = g2_evidence(plan=small_plan({**TINY, "evidence": {"required": ["volume"]}}))
    rows = []
    for tool, name in (("mdadm", "good-detail.txt"), ("xfs-info", "good-raid0-of-4.txt"), ("findmnt", "good-nested.json")):
        text = (FIXTURES / tool / name).read_text()
        if tool == "findmnt":
            inner = json.loads(text)["filesystems"][0]["children"]
            text = json.dumps({"filesystems": inner})
        for old, new in (edit or {}).items():
            text = text.replace(old, new)
        evidence.files[evidence.path("deploy", f"{tool}.out")] = text.encode()
        rows.append(
            {
                "name": tool,
                "tool": tool,
                "argv": argv_of(tool, tool),
                "exit_code": 0,
                "timed_out": False,
                "stdout": f"{tool}.out",
                "stderr": f"{tool}.err",
            }
        )
    evidence.files[evidence.path("deploy", "commands.json")] = dumped(rows)
    return evidence


@pytest.mark.parametrize(
    ("edit", "name", "verdict"),
    [
        ({}, "g2.volume.raid", "pass"),
        ({}, "g2.volume.stripe", "pass"),
        ({}, "g2.volume.mount", "pass"),
        ({"raid0": "raid5"}, "g2.volume.raid", "fail"),
        (REMOVED, "g2.volume.raid", "fail"),
        ({MEMBER: ""}, "g2.volume.raid", "inconclusive"),  # mdadm tells each place, an empty one too: this line was lost
        ({"swidth=512": "swidth=256"}, "g2.volume.stripe", "fail"),
        ({"512K": "1M"}, "g2.volume.stripe", "fail"),
        ({"rw,noatime": "ro,noatime"}, "g2.volume.mount", "fail"),
        ({"Raid Level": "Level"}, "g2.volume.raid", "inconclusive"),
    ],
)
def test_the_volume_is_judged_by_its_geometry_and_members(edit, name, verdict):
    assert checks(with_volume(edit))[name]["verdict"] == verdict


def test_a_volume_that_the_plan_does_not_require_is_not_tested_and_nobody_agreed_on_it():
    found = checks(g2_evidence(plan=small_plan(TINY)))
    assert not any(n.get("agreed") for n in found["not_tested"])
    assert {"g2.volume.raid", "g2.volume.stripe", "g2.volume.mount"} <= {n.get("check") for n in found["not_tested"]}
    assert found["verdict"] == "pass"
