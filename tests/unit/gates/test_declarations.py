"""Every check of a verdict is declared once: title, quantity, unit, direction, limit, rule, evidence, weight and source, in both languages."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner

from app.commands.gate import WIDE, register
from app.settings import ROOT
from gates.canonical import plain
from gates.declarations import DECLARED, claim_rows, declaration_of, not_asked, rows
from gates.declared import DIRECTIONS
from gates.describe import page, table
from gates.judge import judge
from gates.plan import Plan, parse_plan
from gates.quantities import named
from gates.rules.claim_table import CLAIMS, OF_GATES
from tests.bundles import g2_evidence, g3_evidence, g4_evidence, small_plan, soak_plan
from tests.unit.gates.chinese import english
from tests.unit.rack.simulate import bundle_of, demo_plan, evidence
from tools.checks_page import PAGE

GATES = ("G1", "G2", "G3", "G4")
SYMBOLS = {"bit"}  # of units
EVERY = [pytest.param(gate, declared, id=declared.id) for gate in GATES for declared in DECLARED[gate]]


@pytest.fixture(scope="module")
def judged() -> dict[str, tuple[Plan, dict[str, Any]]]:
    """Give the plan and verdict of a good attempt at each gate."""
    sla = small_plan({"g3": {"sla": {"ttft_p50": {"2": "10 s"}}}, "workload": {"tiers": [2]}, **_ONE_TIER})
    soak = soak_plan({"g4": {"injections": [{"label": "path-down", "action": "path-down", "at": "6 h", "lasts": "10 min"}]}})
    plans = {"G1": demo_plan(), "G2": small_plan(), "G3": sla, "G4": soak}
    bundles = {
        "G1": bundle_of(evidence(), plans["G1"]),
        "G2": g2_evidence(plan=plans["G2"]).bundle(),
        "G3": g3_evidence(plan=sla).bundle(),
        "G4": g4_evidence(plan=plans["G4"]).bundle(),
    }
    return {gate: (plans[gate], judge(bundle)) for gate, bundle in bundles.items()}


_ONE_TIER = {
    "workload": {"tiers": [2], "requests_per_run": {"min": 20, "per_concurrency": 1}, "identity_repeats": 2, "warmup_requests": 1},
    "g3": {"ttft_p50_drop_min": {"tiers": [2]}, "throughput_gain_band": {"tiers": [2]}, "sla": {"ttft_p50": {"2": "10 s"}}},
    "g4": {"tier": 2},
}


@pytest.mark.parametrize("gate", GATES)
def test_every_check_of_a_verdict_is_what_its_declaration_says(judged, gate):
    plan, document = judged[gate]
    assert document["checks"]
    for check in document["checks"]:
        declared = declaration_of(gate, check["id"])
        assert declared is not None, check["id"]
        assert _pattern(declared.title.en).fullmatch(check["title"]["en"]), check["id"]
        assert _pattern(declared.title.zh).fullmatch(check["title"]["zh-CN"]), check["id"]
        assert check["unit"] == declared.unit, check["id"]
        assert check["severity"] == declared.weight(plan, check["tier"]), check["id"]
        limit = declared.limit(plan)
        assert check["limit"]["op"] == limit.op, check["id"]
        if not any(isinstance(end, str) for end in (limit.low, limit.high)):  # else only the order, the part or the tier tells it
            assert check["limit"] == plain(limit.json()), check["id"]
        assert check["source"] in declared.source.split(", ") or check["source"] == declared.source, check["id"]


@pytest.mark.parametrize("gate", GATES)
def test_every_declared_check_stands_in_the_verdict_of_its_gate(judged, gate):
    """Answered, or among what was not tested and why; but for what appears only where something forbids a pass."""
    document = judged[gate][1]
    found = {declaration_of(gate, check["id"]).id for check in document["checks"]}
    left_out = {row.get("check") for row in document["not_tested"]}
    assert {d.id for d in DECLARED[gate]} - found - left_out == {f"{gate.lower()}.attempt"}


@pytest.mark.parametrize("gate", GATES)
def test_every_claim_of_a_verdict_is_what_its_declaration_says(judged, gate):
    plan, document = judged[gate]
    assert {claim["claim"] for claim in document["claims"]} == set(OF_GATES[gate])
    for claim in document["claims"]:
        declared = CLAIMS[claim["claim"]]
        assert claim["title"] == declared.title.json()
        if claim["status"] not in ("not_applicable", "not_tested"):
            assert claim["limit"] == plain(declared.limit(plan, claim["arm"]).json()), claim["claim"]


@pytest.mark.parametrize(("gate", "declared"), EVERY)
def test_a_declaration_says_everything_in_both_languages(gate, declared):
    assert declared.id.startswith(gate.lower() + ".")
    assert declared.title.en
    assert declared.title.zh
    assert re.search(r"[\u4e00-\u9fff]", declared.rule.zh)
    assert declared.direction in DIRECTIONS
    assert declared.evidence
    assert declared.source
    assert (declared.direction == "told") <= (declared.limit(parse_plan()).op == "none")


def test_every_quantity_has_a_chinese_name_and_no_name_is_left_over():
    assert named() == {declared.quantity for gate in GATES for declared in DECLARED[gate]} - {""}
    for declared in (declared for gate in GATES for declared in DECLARED[gate] if declared.quantity):
        name = declared.quantity_named()
        assert re.search(r"[\u4e00-\u9fff]", name.zh) or name.zh == "TTFT p50", declared.quantity


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_is_shown_in_chinese_but_for_names_of_fields_tools_and_files(gate):
    heads, body = table(gate, parse_plan(), "zh-CN")
    for row in body:
        told = dict(zip(heads, row, strict=True))
        for head in ("检查项", "量", "单位", "方向", "规则", "性质"):
            assert english(told[head]) <= SYMBOLS, told[head]
        assert not re.search(r"\b(?:every|that|the|where|and|or|far|end)\b", told["证据"]), told["证据"]
    assert [row[2] for row in table(gate, parse_plan(), "en")[1]] == [row["quantity"] or "-" for row in rows(gate, parse_plan())]


def on_a_terminal(columns: int, *words: str, piped: bool = False) -> list[str]:
    """Return the lines that the command writes to a terminal of so many columns, or through a pipe to a pager on it."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"TERM": "xterm"}
    argv = [str(Path(sys.executable).with_name("quadgate")), "gate", "show", *words]
    out = subprocess.PIPE if piped else other
    child = subprocess.Popen(argv, cwd=ROOT, env=env, stdin=other, stdout=out, stderr=other)
    os.close(other)
    if piped:
        data = child.communicate()[0]
    else:
        chunks = []
        with suppress(OSError):  # the end of a terminal is an error of its reader
            while chunk := os.read(main, 65536):
                chunks.append(chunk)
        data = b"".join(chunks)
    os.close(main)
    assert child.wait(60) == 0
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip("\r") for line in data.decode().split("\n")]


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize(("columns", "piped"), [(72, False), (80, False), (80, True), (120, True), (180, False), (240, True)])
def test_a_gate_fits_into_the_terminal_that_it_is_read_on(columns, piped, language):
    lines = on_a_terminal(columns, "G3", "--lang", language, piped=piped)
    assert [line for line in lines if cell_len(line) > columns] == []
    text = re.sub(r"\s", "", "".join(lines))
    for row in rows("G3", parse_plan()):
        assert row["id"] in text or columns >= WIDE  # a column may part a long one
        assert "".join(row["source"].split()) in text or columns >= WIDE


def test_a_gate_in_a_file_has_every_check_on_one_line_whatever_the_terminal(tmp_path):
    with (tmp_path / "table").open("wb") as out:
        argv = [str(Path(sys.executable).with_name("quadgate")), "gate", "show", "G3", "--lang", "zh-CN"]
        subprocess.run(argv, cwd=ROOT, env={**os.environ, "COLUMNS": "80"}, stdout=out, check=True)
    lines = (tmp_path / "table").read_text(encoding="utf-8").splitlines()
    for row in rows("G3", parse_plan()):
        (line,) = (line for line in lines if line.startswith(f"{row['id']} "))
        assert row["source"] in line


@pytest.mark.parametrize(("gate", "declared"), EVERY)
def test_a_source_that_names_the_plan_names_a_field_of_it(gate, declared):
    for source in declared.source.split(", "):
        if re.match(r"(g[1-4]|validity|arms|platform)\.", source) and source != "g1.order":
            node: Any = parse_plan()
            for key in source.split("."):  # a field that is not written while it is at its default is a field too
                assert key in node if isinstance(node, dict) else hasattr(node, key), source
                node = node[key] if isinstance(node, dict) else getattr(node, key)


@pytest.mark.parametrize("gate", GATES)
def test_no_check_is_declared_twice(gate):
    names = [row["id"] for row in rows(gate, parse_plan())]
    assert len(names) == len(set(names))


def test_a_tiers_weight_follows_the_plan():
    weights = {row["id"]: row["severity"] for row in rows("G3", parse_plan())}
    assert (weights["g3.throughput_gain.c16"], weights["g3.throughput_gain.c32"]) == ("blocking", "advisory")


def test_a_plans_own_limits_and_what_it_leaves_out_are_shown():
    plan = parse_plan({"validity": {"hbm_hits_max": "0.004"}, "not_tested": [{"claim": "replay", "reason": "one pass only"}]})
    shown = {row["claim"]: row for row in claim_rows("G3", plan)}
    assert shown["hbm_cold"]["limit"]["high"] == "0.004"
    assert shown["replay"]["left_out"] == "one pass only"


def test_the_page_of_checks_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == page(parse_plan()), "stale: run .venv/bin/python -m tools.checks_page"


def run(*words: str):
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["gate", *words])


def test_the_command_shows_a_gate_in_both_languages_and_as_json(tmp_path):
    assert "TTFT p50 drop at c8" in run("show", "G3", "--lang", "en").stdout
    assert "c8 TTFT p50 降幅" in run("show", "g3", "--language", "zh").stdout  # its older name, shown nowhere
    assert "--language" not in run("show", "--help").stdout
    plan = tmp_path / "plan.yaml"
    plan.write_text("g3: {ttft_p50_drop_min: {limit: 0.3}}\n")
    told = json.loads(run("show", "G3", "--plan", str(plan), "--json").stdout)
    row = next(c for c in told["checks"] if c["id"] == "g3.ttft_p50_drop.c8")
    assert row["limit"] == {"op": ">=", "low": "0.3", "high": None}


@pytest.mark.parametrize("words", [("show", "G5"), ("show",), ("show", "G3", "--lang", "fr"), ("show", "G3", "--plan", "gone.yaml")])
def test_a_usage_error_never_reads_as_a_verdict(words):
    assert run(*words).exit_code not in (0, 1, 3, 4)


def _pattern(title: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[a-z]+\\\}", ".+", re.escape(title)))


@pytest.mark.parametrize(("gate", "declared"), [(gate, declared) for gate in GATES for declared in DECLARED[gate]])
def test_no_check_that_was_not_tested_is_printed_with_a_placeholder(gate, declared):
    plan = parse_plan()
    for row in (declared.left_out(plan), declared.not_told(plan)):
        for said in (*row["title"].values(), *row["reason"].values()):
            assert not re.search(r"NAME|名称|KIND|None|[{}]", said), said


def test_a_plan_tells_what_it_does_not_ask_for_before_it_is_sealed():
    def titles(differences):
        return {(row["gate"], row["title"]["en"]) for row in not_asked(parse_plan(differences))}

    usual = titles({})
    assert ("G1", "RDMA bandwidth of the ports") in usual
    asked = titles({"evidence": {"required": [*parse_plan().evidence.required, "rdma_bandwidth"]}, "workload": {"cells": ["model_load"]}})
    assert len(usual - asked) == 2
    assert not asked - usual
