"""What if: stored evidence under another plan. It shows differences and says that it is no verdict."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import build
from gates.judge import judge
from gates.plan import changed_plan
from gates.whatif import plan_changes, what_if
from tests.bundles import Truth, g4_evidence, soak_plan
from tests.unit.rack.simulate import bundle_of, demo_plan

RUN = CliRunner()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A soak whose memory grows by less than the plan allows, and its verdict."""
    evidence = g4_evidence(Truth(leak_bytes=30 * 2**20), soak_plan())
    document = judge(evidence.bundle())
    assert document["verdict"] == "pass"
    return evidence.write(tmp_path_factory.mktemp("b") / "bundle", document)


def look(bundle: Path, tmp_path: Path, text: str, *more: str):
    plan = tmp_path / "plan.yaml"
    plan.write_text(text, encoding="utf-8")
    return RUN.invoke(build(), ["whatif", str(bundle), "--plan", str(plan), "--lang", "en", *more])


def test_another_limit_shows_which_check_would_be_answered_otherwise_and_changes_nothing(bundle: Path, tmp_path: Path):
    before = {p: p.read_bytes() for p in bundle.rglob("*") if p.is_file()}
    answer = look(bundle, tmp_path, 'g4: {leak: {headroom_share_max: "0.02"}}', "--json")
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.output)
    assert (told["sealed"]["verdict"], told["other"]["verdict"]) == ("pass", "fail")
    assert told["plan"] == [{"path": "g4.leak.headroom_share_max", "from": "0.2", "to": "0.02"}]
    assert [c["check"] for c in told["checks"]] == ["g4.leak"]
    assert "no verdict" in told["no_verdict"]["en"]
    assert {p: p.read_bytes() for p in bundle.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("limit", ["0.02", "0.2"])
def test_its_exit_code_never_reads_as_a_verdict(bundle: Path, tmp_path: Path, limit: str):
    answer = look(bundle, tmp_path, f'g4: {{leak: {{headroom_share_max: "{limit}"}}}}')
    assert answer.exit_code == 0
    assert answer.output.count("This is no verdict") == 2
    assert ("nothing differs" in answer.output) == (limit == "0.2")


def test_a_changed_byte_is_unreadable_and_a_bad_plan_names_the_field(bundle: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    for path in bundle.rglob("*"):
        if path.is_file():
            target = copy / path.relative_to(bundle)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    victim = copy / "evidence" / "soak" / "gpu01" / "client.json"
    victim.write_bytes(victim.read_bytes().replace(b"1.5", b"1.6"))
    assert look(copy, tmp_path, "{}").exit_code == 4
    refused = look(bundle, tmp_path, "g4: {leek: 1}", "--json")
    assert refused.exit_code == 65
    assert json.loads(refused.output)["problems"][0]["path"] == "g4.leek"


def test_a_bundle_of_another_judge_is_said_to_be_one_and_what_that_alone_changes_is_shown():
    evidence = g4_evidence(plan=soak_plan())
    made = evidence.bundle()
    stored = judge(made)
    old = next(c for c in stored["checks"] if c["id"] == "g4.leak")
    old["verdict"] = "inconclusive"
    made.manifest["judge_version"] = "0.0.1"
    made.stored_verdict = stored
    told = what_if(made, changed_plan(made.plan, {"g4": {"leak": {"headroom_share_max": "0.3"}}}))
    assert told["judge"]["same"] is False
    assert [(r["check"], r["from"]["verdict"], r["to"]["verdict"]) for r in told["stored"]] == [("g4.leak", "inconclusive", "pass")]
    assert told["sealed"]["verdict"] == told["other"]["verdict"] == "pass"


def test_what_changed_in_what_was_read_is_told_file_by_file_when_another_judge_made_the_stored_verdict():
    made = g4_evidence(plan=soak_plan()).bundle()
    stored = judge(made)
    leak = next(c for c in stored["checks"] if c["id"] == "g4.leak")
    path, now = leak["evidence"][0], leak["value"]
    leak["value"], leak["evidence"] = "123", ["evidence/soak/gpu01/gone.jsonl"]
    made.manifest["rules_hash"] = "sha256:" + "0" * 64
    made.stored_verdict = stored
    told = what_if(made)
    rows = {row["path"]: row for row in told["read"]}
    assert (rows["evidence/soak/gpu01/gone.jsonl"]["before"], rows["evidence/soak/gpu01/gone.jsonl"]["after"]) == (True, False)
    assert (rows[path]["before"], rows[path]["after"]) == (False, True)
    assert [(c["check"], c["from"]["value"], c["to"]["value"]) for c in rows[path]["checks"]] == [("g4.leak", "123", now)]
    made.manifest["rules_hash"] = told["judge"]["here"]["rules_hash"]
    assert what_if(made)["read"] == []


def test_a_file_that_another_version_of_a_reader_reads_otherwise_is_named_although_no_check_changes(whole):
    made = bundle_of(whole, demo_plan())
    stored = judge(made)
    row = next(row for row in stored["readings"] if row["path"] == "evidence/survey/gpu01/kernel-log.out")
    now, then = dict(row), {"reader": "kernel-log", "observations": 3, "problems": 1, "sha256": "sha256:" + "1" * 64}
    row.update(then)
    made.manifest["rules_hash"] = "sha256:" + "0" * 64
    made.stored_verdict = stored
    assert what_if(made)["read"] == [
        {"path": now.pop("path"), "before": True, "after": True, "read": {"from": then, "to": now}, "checks": []},
    ]
    assert (now["reader"], now["problems"], now["observations"] > 3) == ("kernel-log", 0, True)
    gone = next(row for row in stored["readings"] if row["reader"] == "fio")
    stored["readings"] = [r for r in stored["readings"] if r["path"] != gone["path"]]
    assert {r["path"]: r["read"]["from"] for r in what_if(made)["read"]}[gone["path"]] is None
    del stored["readings"]  # a verdict of an earlier release
    assert what_if(made)["read"] == []


def test_without_a_plan_the_judge_alone_is_looked_at(bundle: Path):
    answer = RUN.invoke(build(), ["whatif", str(bundle), "--lang", "en"])
    assert answer.exit_code == 0, answer.output
    assert "made by this judge" in answer.output
    assert answer.output.count("This is no verdict") == 2
    told = json.loads(RUN.invoke(build(), ["whatif", str(bundle), "--json"]).output)
    assert (told["plan"], told["checks"], told["before"]["verdict"]) == ([], [], "pass")


def test_plan_changes_name_what_was_added_and_what_is_gone():
    assert plan_changes({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": [3]}}) == [
        {"path": "a.d", "from": None, "to": [3]},
        {"path": "a.c", "from": 2, "to": None},
    ]


def test_what_would_be_answered_otherwise_is_printed_in_chinese_words_alone(bundle: Path, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text('g4: {leak: {headroom_share_max: "0.000001"}}')
    answer = RUN.invoke(build(), ["whatif", str(bundle), "--plan", str(tmp_path / "plan.yaml"), "--lang", "zh-CN"])
    assert answer.exit_code == 0, answer.output
    assert "封存计划下为 通过，另一计划下为 不通过" in answer.output
    assert "  通过 -> 不通过  g4.leak" in answer.output
