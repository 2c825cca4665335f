"""Several instances of one model: their counters add up, they must be alike, and be as many as were sealed."""

from __future__ import annotations

from typing import Any

import pytest

from gates.judge import judge
from gates.plan import InvalidPlan, parse_plan
from tests.bundles import g3_evidence, small_plan
from tests.bundles.evidence import Evidence

SEALED = {"platform": {"layout": {"tp": 4, "ep": 1, "instances": 2}}}
RUNS = ("run-1", "run-2", "run-3", "run-4", "recompute", "placebo")


def two(evidence: Evidence, change: dict[str, Any] | None = None, step: str = "run-2") -> Evidence:
    """Let every run have been served by two instances, each with half of the counts; `change` is what the second of one run says otherwise."""

    def described(name: str) -> Any:
        def edit(data: dict[str, Any]) -> None:
            other = {**data, **(change or {} if name == step else {})}
            data["instances"] = [{**data, "url": "http://127.0.0.1:1"}, {**other, "url": "http://127.0.0.1:2"}]

        return edit

    def counted(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["metrics"] = {
                f'{name}{{instance="{n}"{"," + labels if labels else "}"}': str(float(value) / 2)
                for series, value in row["metrics"].items()
                for n in (0, 1)
                for name, _, labels in [series.partition("{")]
            }

    for name in RUNS:
        evidence.json(name, "engine.json", described(name))
        evidence.lines(name, "counters.jsonl", counted)
    return evidence


def test_two_instances_are_judged_by_the_sum_of_what_both_counted() -> None:
    document = judge(two(g3_evidence(plan=small_plan(SEALED))).bundle())
    assert document["verdict"] == "pass", [c["reason"]["en"] for c in document["claims"] if c["status"] != "holds"]


@pytest.mark.parametrize(
    ("change", "word"),
    [({"version": "0.9"}, "version"), ({"num_gpu_blocks": 7}, "num_gpu_blocks"), ({"argv": ["lab-engine", "--max-num-seqs", "9"]}, "max_num_seqs")],
)
def test_instances_that_differ_are_no_equal_work(change: dict[str, Any], word: str) -> None:
    document = judge(two(g3_evidence(plan=small_plan(SEALED)), change).bundle())
    told = next(c for c in document["claims"] if (c["claim"], c["arm"]) == ("equal_work", "candidate"))
    assert (document["verdict"], told["status"]) == ("invalid", "breached")
    assert f"instance 1 differs from instance 0 in {word}" in told["reason"]["en"]


@pytest.mark.parametrize("evidence", [g3_evidence(plan=small_plan(SEALED)), two(g3_evidence())], ids=["one for two", "two for one"])
def test_another_number_of_instances_than_was_sealed_is_no_equal_work(evidence: Evidence) -> None:
    document = judge(evidence.bundle())
    assert document["verdict"] == "invalid"
    assert "platform.layout.instances" in next(c for c in document["claims"] if c["claim"] == "equal_work")["reason"]["en"]


def test_a_concurrency_that_instances_cannot_share_evenly_and_clients_beside_several_are_refused() -> None:
    with pytest.raises(InvalidPlan) as refused:
        parse_plan({"platform": {"layout": {"tp": 2, "ep": 1, "instances": 3}}})
    assert {problem.path for problem in refused.value.problems} == {"workload.tiers"}
    with pytest.raises(InvalidPlan) as refused:
        parse_plan({**SEALED, "workload": {"clients": [{"tool": "aiperf", "tier": 8, "requests": 9}]}})
    assert [problem.path for problem in refused.value.problems] == ["workload.clients"]
