"""What would change an answer that is none: every check of every gate names an act, a file, or how much more; never a file that is whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from gates.declarations import DECLARED, declaration_of
from gates.judge import judge
from gates.model import Verdict
from gates.rules import across
from gates.rules.claim import Findings
from gates.rules.decision import Effect, decide, pairs_needed
from tests.bundles import g2_evidence, g3_evidence, g4_evidence, small_plan, soak_plan
from tests.bundles.evidence import Evidence
from tests.unit.gates.measured import measured
from tests.unit.gates.test_extension import UNDECIDED, plan_of, truth
from tests.unit.rack.simulate import bundle_of, demo_plan
from tests.unit.rack.simulate import evidence as arrival

CJK = range(0x4E00, 0x9FFF)
EVIDENCE: dict[str, Callable[[], Evidence]] = {
    "G2": lambda: g2_evidence(plan=small_plan({"evidence": {"required": ["volume"]}})),
    "G3": lambda: g3_evidence(plan=small_plan({"g3": {"sla": {"ttft_p50": {"2": "10 s"}}}})),
    "G4": lambda: g4_evidence(plan=soak_plan()),
}


def unanswered(document: dict[str, Any]) -> dict[str, str]:
    """Return what would change each check without an answer."""
    return {c["id"]: c["change"]["en"] for c in document["checks"] if c["verdict"] in ("inconclusive", "invalid")}


@pytest.mark.parametrize("gate", list(EVIDENCE))
def test_every_declared_check_says_what_would_change_it_when_it_is_not_answered(gate: str) -> None:
    evidence = EVIDENCE[gate]()
    evidence.drop(next(path for path in evidence.files if path.endswith("/client.json")))
    evidence.inputs(lambda d: d.update(interruption="canceled"))
    document = judge(evidence.bundle())
    told = unanswered(document)
    declared = {d.id for d in DECLARED[gate]} - {row.get("check") for row in document["not_tested"]}
    answered_all_the_same = {
        f"{gate.lower()}.{name}" for name in ("client_cpu", "clock_steps", "page_cache_growth")
    }  # by other runs and files, where there are any
    assert declared - {declaration_of(gate, name).id for name in told} - answered_all_the_same <= {"g4.injection_{name}"}
    assert all(told.values())


def test_every_check_of_an_arrival_without_its_surveys_says_what_would_change_it() -> None:
    files = {path: data for path, data in arrival().items() if not path.endswith("commands.json") and "form" not in path}
    told = unanswered(judge(bundle_of(files, demo_plan())))
    assert len(told) > 20
    assert "the unpacking form filled in" in told["g1.unpacking"]


@pytest.mark.parametrize(
    ("edit", "says", "zh"),
    [
        ({"interruption": "canceled"}, "a new attempt that runs to its end would change it", "执行完毕的新尝试"),
        ({"interruption": "error"}, "a new attempt that runs to its end would change it", "执行完毕的新尝试"),
    ],
)
@pytest.mark.parametrize("gate", ["G1", *EVIDENCE])
def test_an_attempt_that_was_ended_asks_for_another_and_for_no_file(gate: str, edit: dict[str, str], says: str, zh: str) -> None:
    summary = judge(_told(gate, edit))["summary"]
    assert says in summary["en"]
    assert zh in summary["zh-CN"]


@pytest.mark.parametrize("gate", ["G1", *EVIDENCE])
def test_a_rehearsal_asks_for_an_attempt_that_counts(gate: str) -> None:
    bundle = _told(gate, {})
    bundle.manifest["attempt"]["rehearsal"] = True
    assert "an attempt that counts, and is no rehearsal, would be judged" in judge(bundle)["summary"]["en"]


def _told(gate: str, edit: dict[str, str]) -> Any:
    if gate == "G1":
        files = arrival()
        told = json.loads(files["evidence/inputs.json"]) | edit
        return bundle_of({**files, "evidence/inputs.json": json.dumps(told).encode()}, demo_plan())
    return EVIDENCE[gate]().inputs(lambda d: d.update(edit)).bundle()


def test_telemetry_that_is_whole_and_too_thin_asks_for_more_of_it_and_for_no_file() -> None:
    evidence = g4_evidence(plan=soak_plan())

    def thin(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row for n, row in enumerate(rows) if n < len(rows) // 2 or n % 9 == 0 or n == len(rows) - 1]

    evidence.lines("soak", "telemetry.jsonl", thin, renumber=True)
    found = unanswered(judge(evidence.bundle()))
    assert "h more of the soak would have told" in found["g4.telemetry_coverage"]
    assert not [said for said in found.values() if "whole and readable" in said]


def test_an_engine_that_is_not_seen_and_a_counter_that_is_not_told_ask_for_samples_that_tell() -> None:
    evidence = g4_evidence(plan=soak_plan())
    name = soak_plan().g4.fatal_counters[0]

    def silent(rows: list[dict[str, Any]]) -> None:
        rows[5].pop("process", None)
        rows[5]["counters"].pop(name, None)

    evidence.lines("soak", "telemetry.jsonl", silent)
    found = unanswered(judge(evidence.bundle()))
    assert f"every sample tells {name}" in found[f"g4.counter_{name}"]


def test_an_interval_that_holds_the_limit_says_how_many_more_run_pairs_it_takes_and_so_many_decide() -> None:
    plan = plan_of()
    limit = plan.g3.ttft_p50_drop_min.limit
    four = [Fraction(68, 100), Fraction(75, 100), Fraction(71, 100), Fraction(77, 100)]
    effect = Effect(tuple((Fraction(1), v) for v in four), drop=True)
    assert decide(effect, limit, plan.decision)[0] is not Verdict.PASS
    total = pairs_needed(effect, limit, plan.decision)
    assert total is not None
    assert total % 2 == 0
    more = Effect(tuple((Fraction(1), v) for v in (four * (total // 4 + 1))[: total + total % 4]), drop=True)
    assert decide(more, limit, plan.decision)[0] is Verdict.PASS
    at_the_limit = Effect(tuple((Fraction(1), v) for v in (Fraction(70, 100), Fraction(5625, 7000))), drop=True)
    assert pairs_needed(at_the_limit, limit, plan.decision) is None


def test_a_main_gate_whose_interval_is_too_wide_names_run_pairs() -> None:
    document = judge(g3_evidence(truth(*UNDECIDED), plan_of()).bundle())
    assert document["verdict"] == "inconclusive"
    assert re.search(r"about \d+ more run pairs would tell, .*; 4 more run pairs can decide it", document["summary"]["en"])
    assert "轮次对" in document["summary"]["zh-CN"]


def test_where_requests_are_what_is_missing_it_says_how_many() -> None:
    plan = small_plan()
    values = dict.fromkeys(plan.workload.tiers[1:], (10**9, 100))
    data = Findings(plan, tuple(measured(plan, "baseline", f"run-{n}", values) for n in (1, 2)))
    found = across.baselines_agree(data)
    asked = plan.workload.requests(plan.workload.tiers[0])
    assert found.change is not None
    assert f"{2 * asked} more answered requests at c2, of {asked} in each run (run-1, run-2)" in found.change.en
    assert f"{2 * asked} 个成功应答的请求" in found.change.zh


def test_a_drive_without_a_self_test_names_the_act() -> None:
    never = (Path(__file__).parents[1] / "readers/fixtures/nvme-self-test-log/good-never-run.json").read_bytes()
    document = judge(bundle_of({**arrival(), "evidence/survey/array01/nvme-self-test-log.nvme0.out": never}, demo_plan()))
    assert "nvme device-self-test" in unanswered(document)["g1.drive.self_test"]
    assert "nvme device-self-test" in document["summary"]["en"]
