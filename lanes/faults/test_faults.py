"""Every fault of the demo gives the right verdict for the right reason, and faults of strength 0 give none."""

from __future__ import annotations

import json
import subprocess
import zipfile
from typing import Any

import pytest

from app.demo.options import FAULTS
from lanes.conftest import QUADGATE

TARGET_FAULTS = [name for name in FAULTS if name != "worker-kill"]  # killing has no strength: it is done or not


def why(summary: dict[str, Any], gate: str) -> str:
    """Return every reason of a gate in one text, both languages."""
    return " ".join(reason["en"] + " " + reason["zh-CN"] for reason in summary["gates"][gate]["reasons"])


def verdicts(summary: dict[str, Any]) -> list[str | None]:
    """Return the four verdicts in order."""
    return [summary["gates"][gate]["verdict"] for gate in ("G1", "G2", "G3", "G4")]


def test_no_fault_at_strength_0_changes_any_verdict(demo):
    summary = demo(*(part for name in TARGET_FAULTS for part in ("--fault", f"{name}=0")))
    assert verdicts(summary) == ["pass", "pass", "pass", "pass"]
    assert summary["engagement"]["state"] == "concluded"


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
    summary = demo("--fault", "worker-kill")
    assert [kill["gate"] for kill in summary["worker_kills"]] == ["G3", "G4"]
    assert verdicts(summary) == ["pass", "pass", "pass", "pass"]
    for gate in ("G3", "G4"):
        with zipfile.ZipFile(summary["folder"] / summary["gates"][gate]["bundle"]) as bundle:
            journals = [name for name in bundle.namelist() if name.endswith("/records.jsonl")]
            assert journals
            for name in journals:
                lines = [json.loads(line) for line in bundle.read(name).splitlines()]
                assert [line["seq"] for line in lines] == list(range(len(lines))), name


def test_another_seed_gives_other_numbers_and_the_same_verdicts(demo, tmp_path):
    summary = demo("--seed", "7")
    assert verdicts(summary) == ["pass", "pass", "pass", "pass"]
    judged = subprocess.run(
        [str(QUADGATE), "judge", str(summary["folder"] / summary["gates"]["G3"]["bundle"]), "--json"], capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stderr
    assert json.loads(judged.stdout)["plan_hash"] == summary["plan_hash"]
