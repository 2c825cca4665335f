"""The PCIe link of GPUs against what each device is rated for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gates.g1_arrival import judge
from gates.model import CheckResult, Verdict
from tests.unit.rack.simulate import bundle_of, demo_plan, rack, rack_for, run_tool

Files = dict[str, bytes]
SURVEY = "evidence/survey/gpu01/"


def link(files: Files) -> CheckResult:
    plan = demo_plan()
    return next(c for c in judge(plan, bundle_of(files, plan)).checks if c.id == "g1.gpu.link")


def edited(files: Files, name: str, edit: Callable[[dict[str, Any]], Any]) -> Files:
    """Return the files with each GPU of one output edited."""
    document = json.loads(files[f"{SURVEY}{name}.out"])
    for gpu in document["gpu_data"]:
        edit(gpu)
    return files | {f"{SURVEY}{name}.out": json.dumps(document).encode()}


def with_lspci(files: Files, text: str) -> Files:
    row = {"name": "lspci", "tool": "lspci", "argv": ["lspci"], "exit_code": 0, "timed_out": False, "stdout": "lspci.out", "stderr": "lspci.err"}
    rows = [r for r in json.loads(files[f"{SURVEY}commands.json"]) if r["name"] != "lspci"]
    return files | {f"{SURVEY}commands.json": json.dumps([*rows, row]).encode(), f"{SURVEY}lspci.out": text.encode()}


def test_eight_gpus_that_are_all_at_half_their_width_fail_although_they_are_alike(whole):
    result = link(edited(whole, "amd-smi-metric", lambda gpu: gpu["pcie"].update(width=8)))
    assert (result.verdict, result.value) == (Verdict.FAIL, 8)
    assert "GPU 0 has x8, rated x16" in result.reason.en
    assert "额定 x16" in result.reason.zh


def test_a_link_that_is_slow_without_load_is_no_pass_and_no_fail(whole):
    result = link(edited(whole, "amd-smi-metric", lambda gpu: gpu["pcie"].update(speed={"value": 16, "unit": "GT/s"})))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "16 of 32 GT/s, read without load" in result.reason.en


def lspci(host: str = "gpu01") -> str:
    return run_tool(["lspci", "-D", "-vvv"], rack_for(rack(), host, ["engine"], {}))[0]


def test_where_amd_smi_does_not_tell_the_rating_lspci_does(whole):
    untold = edited(whole, "amd-smi-static", lambda gpu: gpu["bus"].update(max_pcie_width="N/A", max_pcie_speed="N/A"))
    assert link(with_lspci(untold, lspci())).verdict is Verdict.PASS
    rated_more = lspci().replace("Width x16", "Width x32", 1)
    assert link(with_lspci(untold, rated_more)).verdict is Verdict.FAIL


def test_a_rating_that_nobody_tells_is_inconclusive(whole):
    untold = edited(whole, "amd-smi-static", lambda gpu: (gpu["bus"].pop("max_pcie_width"), gpu["bus"].pop("max_pcie_speed")))
    rows = [r for r in json.loads(untold[f"{SURVEY}commands.json"]) if r["name"] != "lspci"]
    assert link(untold | {f"{SURVEY}commands.json": json.dumps(rows).encode()}).verdict is Verdict.INCONCLUSIVE
