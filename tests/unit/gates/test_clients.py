"""Third-party clients beside our own driver: which runs they follow, what is shown of their results, and that it never decides."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gates.canonical import sha256_hex
from gates.g3_main import steps
from gates.judge import judge
from gates.plan import InvalidPlan, parse_plan
from tests.bundles import g3_evidence, small_plan
from tests.bundles.evidence import Evidence, journal

SAMPLE = Path(__file__).parents[1] / "readers" / "fixtures" / "vllm-bench" / "good-plain.json"
TIER = 4  # of the sample, and one of the plan
FILE = f"client-vllm-bench-c{TIER}.json"
ASKED = {"workload": {"clients": [{"tool": "vllm-bench", "tier": TIER, "requests": 20}]}}
ROW: dict[str, Any] = {"cell": "client", "tool": "vllm-bench", "tier": TIER, "requests": 20, "file": FILE, "cold": True, "bytes": 1}


def result(share: str, **over: Any) -> bytes:
    """Return what vLLM bench wrote of a server, with every TTFT a share of what it was, at the tier of the plan."""
    found: dict[str, Any] = json.loads(SAMPLE.read_text(encoding="utf-8"), parse_float=Decimal)
    for key, value in found.items():
        if key.endswith("_ttft_ms"):
            found[key] = value * Decimal(share)
    found["ttfts"] = [value * Decimal(share) for value in found["ttfts"]]
    return json.dumps({**found, "max_concurrency": TIER, **over}, default=float).encode()


def attempt(rows: dict[str, dict[str, Any]] | None = None, **results: bytes) -> Evidence:
    """Return a sound G3 whose first run of each arm was followed by a client; `rows` change its line, `results` its file, by step."""
    evidence = g3_evidence(plan=small_plan(ASKED))
    given = {"run_1": result("1"), "run_2": result("0.7"), **results}
    for step in ("run-1", "run-2"):
        data = given[step.replace("-", "_")]
        evidence.files[evidence.path(step, "cells.jsonl")] = journal([{**ROW, "sha256": sha256_hex(data), **(rows or {}).get(step, {})}])
        if data:
            evidence.files[evidence.path(step, FILE)] = data
        evidence.repack(step)
    return evidence


def line_of(evidence: Evidence) -> tuple[str, dict[str, Any]]:
    """Return the verdict, and the line of the client."""
    document = judge(evidence.bundle())
    (line,) = (row for row in document["figures"]["diagnostics"] if row["kind"] == "client")
    return document["verdict"], line


def test_a_client_follows_the_first_run_of_each_arm_in_the_order_and_no_other() -> None:
    asked = {
        step.key: step.params.get("clients") for step in steps(parse_plan({"workload": {"clients": [{"tool": "aiperf", "tier": 8, "requests": 9}]}}))
    }
    assert {key for key, clients in asked.items() if clients} == {"run-1", "run-2"}
    assert asked["run-2"] == [{"tool": "aiperf", "tier": 8, "requests": 9}]
    assert all("clients" not in step.params for step in steps(parse_plan()))


@pytest.mark.parametrize(
    ("clients", "field"),
    [
        ([{"tool": "wrk", "tier": 8, "requests": 9}], "workload.clients[0].tool"),
        ([{"tool": "aiperf", "tier": 9, "requests": 9}], "workload.clients[0].tier"),
        ([{"tool": "aiperf", "tier": 8, "requests": 9}, {"tool": "aiperf", "tier": 8, "requests": 20}], "workload.clients[1]"),
    ],
)
def test_a_client_that_nobody_reads_at_a_tier_that_nobody_measures_or_twice_is_refused(clients: list[dict[str, Any]], field: str) -> None:
    with pytest.raises(InvalidPlan) as refused:
        parse_plan({"workload": {"clients": clients}})
    assert [problem.path for problem in refused.value.problems] == [field]


def test_a_plan_without_clients_is_the_plan_that_it_was() -> None:
    assert "clients" not in parse_plan().data["workload"]
    assert parse_plan({"workload": {"clients": []}}).hash == parse_plan().hash


def test_its_figures_stand_beside_ours_of_the_same_runs_in_both_languages_and_decide_nothing() -> None:
    verdict, line = line_of(attempt())
    assert (verdict, line["decides"], line["tier"]) == ("pass", False, TIER)
    assert line["values"]["ttft_p50_drop"] == "0.300000"
    assert line["values"]["throughput_gain"] == "0.000000"
    assert float(line["values"]["own_drop"]) == pytest.approx(0.30, abs=0.02)
    for language in ("en", "zh-CN"):
        assert "30.00 %" in line["text"][language]
        assert "vllm-bench" in line["title"][language]
    slower, _ = line_of(attempt(run_2=result("1.5")))  # a client that saw no gain at all: told, and no verdict
    assert slower == "pass"


@pytest.mark.parametrize(
    ("rows", "results", "word"),
    [
        ({"run-2": {"problem": "guidellm is not installed on this host"}}, {"run_2": b""}, "not installed"),
        ({"run-1": {"cold": False}}, {}, "not shown to be cold"),
        ({}, {"run_2": b""}, "brought no result"),
        ({}, {"run_2": b"{}"}, "no figures that can be compared"),
        ({}, {"run_1": result("1", max_concurrency=TIER + 1)}, "no figures that can be compared"),
        ({}, {"run_2": result("0.7", failed=3, completed=17)}, "no figures that can be compared"),
        ({"run-2": {"file": "client-aiperf-c8.json"}}, {}, "brought no result"),
        ({"run-2": {"sha256": sha256_hex(result("1"))}}, {}, "may be of another run"),
        ({"run-2": {"sha256": None}}, {}, "may be of another run"),
    ],
)
def test_what_it_did_not_show_is_said_and_no_figure_is_made_up(rows: dict[str, Any], results: dict[str, bytes], word: str) -> None:
    verdict, line = line_of(attempt(rows, **results))
    assert verdict == "pass"
    assert word in line["text"]["en"]
    assert line["values"] == {}


def test_nothing_of_it_is_shown_where_the_measurement_says_nothing_about_the_product() -> None:
    evidence = attempt()
    evidence.lines("run-2", "coldness.jsonl", lambda rows: [row.update(resident_bytes=row["bytes"]) for row in rows] and None)
    document = judge(evidence.bundle())
    assert (document["verdict"], [row for row in document["figures"]["diagnostics"] if row["kind"] == "client"]) == ("invalid", [])
