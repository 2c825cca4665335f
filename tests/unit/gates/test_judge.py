"""verdict.json: the roll-up, what keeps an attempt from being a pass, and the command that recomputes it."""

import itertools
import json

import pytest
import typer
from typer.testing import CliRunner

from app.commands import judge as judge_command
from app.commands import plan as plan_command
from app.settings import ROOT
from gates.canonical import canonical_bytes
from gates.judge import ORDER, differences, judge, roll_up
from gates.model import CheckResult, Severity, Verdict
from gates.text import Text
from gates.version import JUDGE_VERSION, RULES_HASH, rules_hash
from tests.bundles import Truth, g2_evidence, g3_evidence, g4_evidence, in_time, small_plan

runner = CliRunner()


@pytest.fixture(scope="module")
def cli():
    app = typer.Typer()
    judge_command.register(app)
    plan_command.register(app)
    return lambda *args: runner.invoke(app, [str(a) for a in args])


def check(verdict, severity=Severity.BLOCKING):
    return CheckResult("x", Text("", ""), verdict, Text("", ""), severity)


def test_the_roll_up_follows_the_order_whatever_stands_beside():
    assert ORDER == (Verdict.FAIL, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.CONDITIONAL, Verdict.PASS)
    for size in (1, 2, 3):
        for found in itertools.product(Verdict, repeat=size):
            assert roll_up([check(v) for v in found]) is min(found, key=ORDER.index)


def test_advisory_checks_never_decide_and_no_blocking_check_is_no_pass():
    assert roll_up([check(Verdict.PASS), check(Verdict.FAIL, Severity.ADVISORY)]) is Verdict.PASS
    assert roll_up([check(Verdict.PASS, Severity.ADVISORY)]) is Verdict.INCONCLUSIVE
    assert roll_up([]) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("make", [g2_evidence, g3_evidence, g4_evidence])
def test_every_verdict_names_its_judge_its_rules_and_its_plan_and_is_the_same_twice(make):
    bundle = make().bundle()
    document = judge(bundle)
    assert (document["judge_version"], document["rules_hash"], document["plan_hash"]) == (JUDGE_VERSION, RULES_HASH, bundle.plan.hash)
    assert document["manifest_hash"] == bundle.manifest_hash
    assert document["verdict"] == "pass"
    assert canonical_bytes(document) == canonical_bytes(judge(make().bundle()))
    keys = {
        "schema",
        "gate",
        "attempt",
        "verdict",
        "because",
        "simulated",
        "time_scale",
        "summary",
        "risk",
        "decision",
        "checks",
        "claims",
        "not_tested",
    }
    assert keys | {"figures", "facts"} <= set(document)
    assert json.loads(canonical_bytes(document)) == document


def test_the_rules_hash_is_over_the_sources():
    assert rules_hash.__wrapped__() == RULES_HASH
    assert RULES_HASH.startswith("sha256:")


@pytest.mark.parametrize(
    "edit",
    [
        lambda e: e.attempt.update(rehearsal=True),
        lambda e: e.attempt.pop("rehearsal"),
        lambda e: e.attempt.update(status="canceled"),
        lambda e: e.attempt.update(status="lost_contact"),
        lambda e: e.attempt.update(status="exploded"),
        lambda e: e.attempt.update(status=["finished"]),
        lambda e: e.attempt.pop("status"),
        lambda e: e.inputs(lambda d: d.update(interruption="error")),
        lambda e: e.inputs(lambda d: d.update(interruption="something new")),
        lambda e: e.inputs(lambda d: d.update(simulated=True)),
        lambda e: setattr(e, "simulated", True),
    ],
)
def test_a_rehearsal_an_interruption_or_an_unnamed_simulation_is_never_a_pass(edit):
    evidence = g2_evidence()
    edit(evidence)
    document = judge(evidence.bundle())
    assert document["verdict"] == "inconclusive"
    assert document["facts"] == {}


LAB_ARGV = ["/usr/bin/python3", "-I", "/srv/quadgate/engine/lab_engine.pyz", "--config", "/srv/quadgate/engine/1/config.json"]
EXAMPLE_ARGV = ["python", "-m", "vllm.entrypoints.openai.api_server", "--kv-transfer-config", '{"kv_connector": "ExampleConnector"}']
COMMAND = {"name": "nvme-list", "tool": "nvme-list", "argv": ["nvme", "list"]}


@pytest.mark.parametrize(
    ("step", "name", "edit"),
    [
        ("run-1", "engine.json", lambda d: {**d, "version": "lab-1.0.0"}),
        ("run-2", "engine.json", lambda d: {**d, "argv": LAB_ARGV}),
        ("run-2", "engine.json", lambda d: {**d, "config": {"prefill_tokens_per_s": 1, "decode_base_s": 1, "service_spread": 0}}),
        ("run-2", "engine.json", lambda d: {**d, "argv": EXAMPLE_ARGV}),
        ("run-1", "job.json", lambda d: {**d, "cells": [{"cell": "fio", "path_prefix": ["/srv/quadgate/rack/bin"]}]}),
        ("run-1", "commands.json", lambda _: [{**COMMAND, "path": "/srv/quadgate/rack/bin/nvme"}]),
        (
            "run-1",
            "commands.json",
            lambda _: [{**COMMAND, "path": "/bin/sh", "argv": ["sh", "-c", "x", "read-aer", "/srv/quadgate/rack/sys"]}],
        ),
    ],
)
def test_evidence_of_a_stand_in_is_simulated_and_no_pass_whatever_every_flag_says(step, name, edit):
    evidence = g2_evidence()
    evidence.files.setdefault(evidence.path(step, name), b"[]")
    document = judge(evidence.json(step, name, edit).bundle())
    assert (document["simulated"], document["verdict"] in ("inconclusive", "invalid")) == (True, True)
    check = next(c for c in document["checks"] if c["id"] == "g2.attempt")
    assert f"evidence/{step}/gpu01/{name}" in check["reason"]["en"]
    assert f"evidence/{step}/gpu01/{name}" in check["reason"]["zh-CN"]


def test_evidence_of_real_tools_and_a_real_engine_is_not_simulated():
    evidence = g2_evidence()
    evidence.files[evidence.path("run-1", "commands.json")] = json.dumps([{**COMMAND, "path": "/opt/rack-tools/bin/nvme"}]).encode()
    for run in ("run-1", "run-2", "run-3"):
        evidence.json(run, "engine.json", lambda d: {**d, "argv": ["vllm", "serve", "--model", "/models/collab-lab_engine-7b"]})
    document = judge(evidence.bundle())
    assert (document["simulated"], document["verdict"]) == (False, "pass")


def _renamed(evidence, job, *, end=None):
    for name, told in {**dict.fromkeys(("job", "engine", "client", "workload"), job), "exit": end or job, "pack": job}.items():
        evidence.json("run-2", f"{name}.json", lambda d, told=told: d.update(job=told), repack=name != "pack")
    return judge(evidence.bundle())


def test_a_job_after_one_that_never_came_to_measure_is_the_steps_own_and_any_other_is_not():
    for job in ("0193-attempt-run-2", "0193-attempt-run-2.2", "0193-attempt-run-2.13"):
        assert _renamed(g2_evidence(), job)["verdict"] == "pass"
    for job in ("0193-attempt-run-2.1", "0193-attempt-run-2.0", "0193-attempt-run-2.02", "0193-attempt-run-2.x", "0193-attempt-run-20", "x-run-2.2"):
        assert _renamed(g2_evidence(), job)["verdict"] == "inconclusive", job
    assert _renamed(g2_evidence(), "0193-attempt-run-2.2", end="0193-attempt-run-2")["verdict"] == "inconclusive"


def test_a_simulated_plan_passes_and_is_marked():
    plan = small_plan({"rig": {"simulated": True, "time_scale": "2880"}})
    document = judge(g2_evidence(plan=plan).bundle())
    assert (document["verdict"], document["simulated"], document["time_scale"]) == ("pass", True, "2880")


@pytest.mark.parametrize(
    ("truth", "code", "word"),
    [
        (Truth(), 0, "pass"),
        (Truth(drop=0.1), 1, "fail"),
        (Truth(drop=0.4), 2, "conditional"),
        (Truth(baseline_runs=(1, 1.2)), 3, "inconclusive"),
        (Truth(placebo=0.8), 3, "invalid"),
    ],
)
def test_the_exit_code_says_the_verdict(cli, tmp_path, truth, code, word):
    evidence = g3_evidence(truth)
    result = cli("judge", evidence.write(tmp_path / "b", judge(evidence.bundle())), "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["verdict"], document["stored_verdict"]) == (code, word, "same")


def test_it_works_without_a_stored_verdict_and_prints_manifest_and_judge(cli, tmp_path):
    path = g2_evidence().zip(tmp_path / "b.zip")
    result = cli("judge", path)
    assert result.exit_code == 0
    assert JUDGE_VERSION in result.stdout
    assert "manifest  sha256:" in result.stdout
    assert json.loads(cli("judge", path, "--json").stdout)["stored_verdict"] == "absent"


def test_samples_altered_with_a_rebuilt_manifest_get_the_verdict_of_the_new_data(cli, tmp_path):
    evidence = g3_evidence()
    good = judge(evidence.bundle())
    for step in ("run-2", "run-3"):
        in_time(evidence.lines(step, "records.jsonl", slower), step)
    assert cli("judge", evidence.write(tmp_path / "new")).exit_code == 1
    result = cli("judge", evidence.write(tmp_path / "old", good))
    assert result.exit_code == 4
    assert "differs" in result.output


def slower(rows):
    """Stretch every measured time of a run by a third, from the start of its tier."""
    starts = {}
    for row in rows:
        if row["phase"] == "measure":
            start = starts.setdefault(row["tier"], min(r["sent_ns"] for r in rows if r["phase"] == "measure" and r["tier"] == row["tier"]))
            for key in ("scheduled_ns", "sent_ns", "first_byte_ns", "first_text_ns", "end_ns"):
                row[key] = start + (row[key] - start) * 4 // 3
            row["server"]["send_ns"] = row["first_text_ns"] - 2000
    return rows


@pytest.mark.parametrize("key", ["verdict", "because", "summary", "checks", "figures", "plan_hash", "facts"])
def test_a_stored_verdict_that_was_touched_anywhere_is_seen(cli, tmp_path, key):
    evidence = g2_evidence()
    stored = judge(evidence.bundle())
    stored[key] = "fail" if key == "verdict" else None
    assert cli("judge", evidence.write(tmp_path / "b", stored)).exit_code == 4


def test_other_rules_may_word_it_differently_but_not_decide_differently():
    bundle = g2_evidence().bundle()
    fresh = judge(bundle)
    older = {**fresh, "rules_hash": "sha256:old", "summary": {"en": "old words", "zh-CN": ""}}
    made = {**bundle.manifest, "rules_hash": "sha256:old"}
    assert differences(older, fresh, made) == []
    assert differences({**older, "verdict": "fail"}, fresh, made) == ["verdict"]
    assert differences({**older, "simulated": not fresh["simulated"]}, fresh, made) == ["simulated"]
    flipped = [{**c, "verdict": "fail"} if c["id"] == "g2.validity" else c for c in fresh["checks"]]
    assert differences({**older, "checks": flipped}, fresh, made) == ["checks.g2.validity"]


@pytest.mark.parametrize("key", ["rules_hash", "judge_version"])
def test_a_stored_verdict_cannot_excuse_itself_by_other_rules_than_its_manifest_names(cli, tmp_path, key):
    evidence = g2_evidence()
    stored = {**judge(evidence.bundle()), key: "other", "figures": {}}
    assert cli("judge", evidence.write(tmp_path / "b", stored)).exit_code == 4


@pytest.mark.parametrize("name", ["verdict", "\x1b[31mkey"])
def test_what_a_forger_wrote_does_not_steer_the_terminal(cli, tmp_path, name):
    evidence = g2_evidence()
    stored = {**judge(evidence.bundle()), name: "\x1b[2J\u202e"}
    result = cli("judge", evidence.write(tmp_path / "b", stored))
    assert result.exit_code == 4
    assert "\x1b" not in result.output
    assert "\\x1b" in result.output


def test_unreadable_is_exit_4_with_a_sentence(cli, tmp_path):
    result = cli("judge", tmp_path / "absent")
    assert result.exit_code == 4
    assert "does not exist" in result.output
    path = g2_evidence().write(tmp_path / "b")
    assert cli("judge", path, "--expect-manifest", "0" * 64).exit_code == 4
    assert "zh-CN" in json.loads(cli("judge", tmp_path / "absent", "--json").stdout)["error"]


def test_plan_check_prints_the_hash_or_the_sentences(cli, tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("g3: {agreement_max: 0.04}\n")
    bad.write_text("g3: {agreement: 0.04}\ng4: {duration: 72}\n")
    assert cli("plan", "check", good).stdout.strip() == small_plan_hash({"g3": {"agreement_max": "0.04"}})
    result = cli("plan", "check", bad)
    assert result.exit_code == 65
    assert "g3.agreement: this key is unknown. Did you mean `agreement_max`? Known here:" in result.output
    assert "g4.duration" in result.output


def small_plan_hash(differences):
    from gates.plan import parse_plan

    return parse_plan(differences).hash


def test_plan_check_reads_the_plan_of_an_engagement_file(cli, tmp_path):
    file, demo = tmp_path / "engagement.yaml", (ROOT / "app/demo/engagement.yaml").read_text(encoding="utf-8")
    file.write_text(demo.replace("  g4: {gap_max:", "  g2: {runs: 4}\n  g4: {gap_max:"), encoding="utf-8")
    assert json.loads(cli("plan", "check", file, "--json").stdout)["plan"]["g2"]["runs"] == 4
    file.write_text("engagement: {code: X}\nplan: [g2]\n")
    assert cli("plan", "check", file).exit_code == 65


def test_plan_check_of_an_engagement_file_names_every_field_that_creating_it_would_refuse(cli, tmp_path):
    demo = (ROOT / "app/demo/engagement.yaml").read_text(encoding="utf-8")
    wrong = (("roles: [approver]", "roles: [aprover]"), ("{prefill_tokens_per_s", "{prefil"), ("read_bytes_per_s: 309", "read_byte_per_s: 309"))
    for old, new in (*wrong, ("gap_max:", "gap_most:")):
        demo = demo.replace(old, new, 1)
    file = tmp_path / "engagement.yaml"
    file.write_text(demo, encoding="utf-8")
    result = cli("plan", "check", file, "--json")
    assert result.exit_code == 65
    assert {problem["path"] for problem in json.loads(result.stdout)["problems"]} == {
        "engagement.people.vendor[1].roles[0]",
        "targets.engine.physics.prefil",
        "targets.arms.baseline.read_byte_per_s",
        "plan.g4.gap_most",
    }
