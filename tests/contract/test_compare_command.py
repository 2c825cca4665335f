"""`quadgate compare` and `quadgate reference check` at the command line: exit codes, JSON, and words in both languages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app import cli
from app.commands.compare import at, spread
from gates.compare import ResultFile
from tests.contract.test_cli import run
from tests.unit.gates.test_compare import BASE, GOOD, files
from tests.unit.readers.seeds import FIXTURES

ROLE = FIXTURES / "inferencex/bad-first_token_doubtful-role.json"


def written(folder: Path, given: list[ResultFile]) -> list[str]:
    for file in given:
        (folder / file.name).write_bytes(file.data)
    return [str(folder / file.name) for file in given]


@pytest.fixture
def base(tmp_path: Path) -> list[str]:
    return written(tmp_path, files(BASE, "baseline"))


@pytest.fixture
def good(tmp_path: Path) -> list[str]:
    return written(tmp_path, files(GOOD, "candidate"))


def test_met_limits_are_2_and_the_json_says_what_is_unproven(base, good, monkeypatch, capsys) -> None:
    assert run(monkeypatch, "compare", "--baseline", *base, "--candidate", *good, "--json") == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["verdict"], document["because"]) == ("conditional", ["unproven"])
    assert all(check["limit_met"] is True for check in document["checks"])
    assert len(document["unproven"]) > 10


def test_an_option_for_each_file_says_the_same_as_one_for_all(base, good, monkeypatch, capsys) -> None:
    words = [w for option, group in (("--baseline", base), ("--candidate", good)) for file in group for w in (option, file)]
    assert run(monkeypatch, "compare", *words, "--json") == 2
    apart = capsys.readouterr().out
    assert run(monkeypatch, "compare", "--json", "--baseline", *base, "--candidate", *good) == 2
    assert capsys.readouterr().out == apart


def test_a_missed_limit_is_1_and_a_missing_tier_3(base, good, monkeypatch, capsys) -> None:
    assert run(monkeypatch, "compare", "--baseline", *good, "--candidate", *base) == 1
    assert "MISSED" in capsys.readouterr().out
    assert run(monkeypatch, "compare", "--baseline", *base, "--candidate", *good[:2]) == 3
    assert "missing_tier" in capsys.readouterr().err


def test_the_same_file_for_both_arms_is_3_and_said_by_both_names(base, tmp_path, monkeypatch, capsys) -> None:
    assert run(monkeypatch, "compare", "--baseline", *base, "--candidate", *base) == 3
    told = capsys.readouterr()
    assert "same_file: Both arms are the same file" in told.err
    assert "MISSED" not in told.out
    copy = tmp_path / "another-name.json"
    copy.write_bytes(Path(base[0]).read_bytes())
    assert run(monkeypatch, "compare", "--baseline", base[0], "--candidate", str(copy), "--json") == 3
    assert json.loads(capsys.readouterr().out)["verdict"] == "invalid"
    assert run(monkeypatch, "compare", "--baseline", base[0], base[0], "--candidate", str(copy), "--json", "--lang", "zh-CN") == 3


def test_a_file_of_no_client_is_4_and_one_that_is_absent_too(base, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "notes.txt").write_text("the TTFT was good")
    for candidate in ("notes.txt", "absent.json"):
        assert run(monkeypatch, "compare", "--baseline", *base, "--candidate", str(tmp_path / candidate), "--json") == 4
        assert candidate in json.loads(capsys.readouterr().out)["error"]["zh-CN"]


def test_a_plan_decides_which_tiers_are_wanted(base, good, tmp_path, monkeypatch, capsys) -> None:
    plan = tmp_path / "plan.yaml"
    tiers = "tiers: [8]"
    plan.write_text(
        f"workload: {{{tiers}}}\ng3: {{ttft_p50_drop_min: {{{tiers}}}, throughput_gain_band: {{{tiers}}}}}\ng4: {{tier: 8}}\n", encoding="utf-8"
    )
    assert run(monkeypatch, "compare", "--baseline", base[0], "--candidate", good[0], "--plan", str(plan)) == 2
    plan.write_text("g3: {ttft_p50_drop_min: {limit: much}}\n", encoding="utf-8")
    assert run(monkeypatch, "compare", "--baseline", base[0], "--candidate", good[0], "--plan", str(plan)) == cli.USAGE


def test_a_tool_that_is_named_is_taken_and_a_wrong_name_is_a_usage_error(base, good, monkeypatch, capsys) -> None:
    assert run(monkeypatch, "compare", "--baseline", *base, "--candidate", *good, "--tool", "vllm-bench") == 2
    assert run(monkeypatch, "compare", "--baseline", *base, "--candidate", *good, "--tool", "fio") == cli.USAGE
    assert "vllm-bench" in capsys.readouterr().err


def test_a_file_that_names_no_concurrency_is_given_its_tier(tmp_path, monkeypatch, capsys) -> None:
    bare = str(FIXTURES / "lmcache-bench/good-summary.json")
    other = tmp_path / "as-slow.json"
    other.write_bytes(Path(bare).read_bytes() + b"\n")
    assert run(monkeypatch, "compare", "--baseline", bare, "--candidate", str(other)) == 3
    assert "FILE@8" in capsys.readouterr().err
    assert run(monkeypatch, "compare", "--baseline", f"{bare}@4", "--candidate", f"{other}@4", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert {(f["tier"], f["tier_from"], f["file"]) for f in document["files"]} == {(4, "stated", bare), (4, "stated", str(other))}
    assert {c["id"]: c["limit_met"] for c in document["checks"]}["g3.ttft_p50_drop.c4"] is False
    for wrong in ("0", "4097"):
        assert run(monkeypatch, "compare", "--baseline", f"{bare}@{wrong}", "--candidate", bare) == cli.USAGE
    assert run(monkeypatch, "compare", "--baseline", "x" * 300 + "@8", "--candidate", bare) == 4


def test_a_file_that_is_really_called_so_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "run@8").write_text("{}")
    assert at(tmp_path / "run@8") == (tmp_path / "run@8", None)
    assert at(tmp_path / "other@8") == (tmp_path / "other", 8)


@pytest.mark.parametrize("words", [[], ["--baseline", "a"], ["a", "b"], ["--baseline", "--candidate", "b"], ["--candidate", "b", "c"]], ids=" ".join)
def test_an_arm_without_a_file_is_a_usage_error(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "compare", *words) == cli.USAGE


def test_the_words_are_chinese_where_they_are_asked_for(base, good, monkeypatch, capsys) -> None:
    run(monkeypatch, "compare", "--baseline", *base, "--candidate", *good, "--lang", "zh-CN")
    said = capsys.readouterr().out
    assert "降幅" in said
    assert "不能据此通过任何门禁" in said
    assert said.splitlines()[-1].startswith("有条件通过")
    assert re.findall(r"^(?:plan|baseline|candidate|conditional)\b", said, re.MULTILINE) == []


def test_files_belong_to_the_option_before_them() -> None:
    assert spread(["--baseline", "a", "b", "--json", "--candidate", "c", "d", "--plan", "p"]) == [
        *("--baseline", "a", "--baseline", "b", "--json", "--candidate", "c", "--candidate", "d", "--plan", "p")
    ]


def test_reading_a_result_whose_first_token_is_doubtful_is_3(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "read", "inferencex", str(ROLE), "--json") == 3
    assert [p["code"] for p in json.loads(capsys.readouterr().out)["problems"]] == ["first_token_doubtful"]


def test_the_reference_figures_are_checked_without_a_verdicts_code(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "reference", "check", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert all(figure["agrees"] for figure in document["figures"])
    assert "gain_beyond_drop" in {finding["code"] for finding in document["findings"]}
