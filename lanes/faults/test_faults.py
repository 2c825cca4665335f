"""Every fault of the demo gives the right verdict for the right reason, and faults of strength 0 give none."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.demo.options import FAULTS
from lanes.conftest import QUADGATE, demo_in
from lanes.faults.account import complaints

TARGET_FAULTS = [name for name in FAULTS if name != "worker-kill"]  # killing has no strength: it is done or not


def why(summary: dict[str, Any], gate: str) -> str:
    """Return every reason of a gate in one text, both languages."""
    return " ".join(reason["en"] + " " + reason["zh-CN"] for reason in summary["gates"][gate]["reasons"])


def verdicts(summary: dict[str, Any]) -> list[str | None]:
    """Return the four verdicts in order."""
    return [summary["gates"][gate]["verdict"] for gate in ("G1", "G2", "G3", "G4")]


@pytest.fixture(scope="session")
def no_fault(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the summary of a demo with every fault at strength 0 and the seed 1, run once."""
    return demo_in(tmp_path_factory.mktemp("no_fault"))(*(part for name in TARGET_FAULTS for part in ("--fault", f"{name}=0")))


def test_no_fault_at_strength_0_changes_any_verdict(no_fault):
    assert verdicts(no_fault) == ["pass", "pass", "pass", "pass"]
    assert no_fault["engagement"]["state"] == "concluded"


@pytest.mark.parametrize(
    ("fault", "named"), [("missing-drive", ["QF26K0A0010"]), ("swapped-drive", ["QF26K0A0010"])], ids=["missing-drive", "swapped-drive"]
)
def test_a_drive_that_is_not_the_one_delivered_fails_g1_and_is_named(demo, fault, named):
    summary = demo("--fault", fault)
    assert summary["gates"]["G1"]["verdict"] == "fail"
    assert all(serial in why(summary, "G1") for serial in named)
    assert verdicts(summary)[1:] == [None, None, None]
    assert summary["gates"]["G2"]["blocked_by"], "a gate that cannot start says why"


def test_a_slow_tier_fails_g3_and_stops_the_engagement(demo):
    summary = demo("--fault", "slow-tier")
    assert verdicts(summary) == ["pass", "pass", "fail", None]
    assert summary["engagement"]["state"] == "stopped"
    assert "TTFT" in why(summary, "G3")
    assert "G3" in summary["gates"]["G4"]["blocked_by"]["en"]


@pytest.mark.parametrize(
    ("fault", "word"), [("warm-cache", "page cache"), ("warm-array-cache", "array"), ("unequal-work", "work")], ids=lambda v: v.replace(" ", "-")
)
def test_a_measurement_that_cannot_be_trusted_is_invalid_and_says_nothing_about_the_product(demo, fault, word):
    summary = demo("--fault", fault)
    assert verdicts(summary)[:3] == ["pass", "pass", "invalid"]
    assert word in why(summary, "G3").lower()
    assert summary["engagement"]["state"] != "stopped"


@pytest.mark.parametrize("fault", ["lost-kv", "corrupt-kv", "silent-errors"])
def test_what_the_candidate_loses_corrupts_or_answers_emptily_fails_g3(demo, fault):
    summary = demo("--fault", fault)
    assert verdicts(summary)[:3] == ["pass", "pass", "fail"]
    assert summary["engagement"]["state"] == "stopped"


@pytest.mark.parametrize("fault", ["drift", "leak", "engine-crash"])
def test_what_breaks_in_the_soak_fails_g4(demo, fault):
    summary = demo("--fault", fault)
    assert verdicts(summary) == ["pass", "pass", "pass", "fail"]


def test_killing_worker_and_playbook_host_loses_and_doubles_nothing(demo):
    still = {"g4": {"hourly_drift_max": "0.6"}}  # an hour of this soak is half a second, and a machine that stood still for one is asked nothing here
    summary = demo("--fault", "worker-kill", plan=still)
    assert [kill["gate"] for kill in summary["worker_kills"]] == ["G3", "G4"]
    assert verdicts(summary) == ["pass", "pass", "pass", "pass"]
    assert [sentence for gate in ("G3", "G4") for sentence in complaints(summary["folder"], gate)] == []


def told_by_g3(folder: Path) -> tuple[dict[str, Any], set[str], dict[str, list[float]]]:
    """Return the plan, what G3 measured with (hashes of its prompts), and what came of it: p50 of TTFT (ms) of every run, by tier and arm."""
    with zipfile.ZipFile(folder / "bundles" / "G3.zip") as bundle:
        journals = [name for name in bundle.namelist() if name.endswith("/records.jsonl")]
        asked = [json.loads(line) for name in journals for line in bundle.read(name).splitlines()]
        plan = json.loads(bundle.read("manifest.json"))["plan"]
        ttft = json.loads(bundle.read("verdict.json"))["figures"]["ttft"]
    prompts = {record["prompt_sha256"] for record in asked if record["phase"] == "measure"}
    arms = ("baseline", "candidate", "recompute", "placebo")
    return plan, prompts, {f"c{tier} {arm}": [run["p50_ms"] for run in told[arm]] for tier, told in ttft.items() for arm in arms}


def test_another_seed_asks_other_prompts_gives_other_numbers_and_the_same_verdicts(demo, no_fault):
    summary = demo("--seed", "7", "--fault", "warm-array-cache=0")  # which asks for a cold array: nothing but the seed differs
    assert verdicts(summary) == verdicts(no_fault) == ["pass", "pass", "pass", "pass"]
    (plan, prompts, p50), (other_plan, other_prompts, other_p50) = told_by_g3(summary["folder"]), told_by_g3(no_fault["folder"])
    assert (plan["decision"].pop("seed"), other_plan["decision"].pop("seed")) == (7, 1)
    assert plan == other_plan
    assert len(prompts) == len(other_prompts) > 100
    assert prompts & other_prompts == set()
    assert p50.keys() == other_p50.keys()
    assert len(p50) == 8  # two tiers, four arms
    for cell, found in p50.items():
        assert found != other_p50[cell], cell
    judged = subprocess.run(
        [str(QUADGATE), "judge", str(summary["folder"] / summary["gates"]["G3"]["bundle"]), "--json"], capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["plan_hash"] == summary["plan_hash"]
