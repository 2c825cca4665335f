"""`quadgate plan odds` and what `plan check` says before sealing."""

import json

import pytest
import typer
from typer.testing import CliRunner

from app.commands import plan as plan_command

runner = CliRunner()


@pytest.fixture(scope="module")
def cli():
    app = typer.Typer()
    plan_command.register(app)
    app.command("other")(lambda: None)  # with one group alone Typer would drop its name
    return lambda *args: runner.invoke(app, [str(a) for a in args])


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "plan.yaml"
    file.write_text("{}\n")
    return file


def test_odds_are_data_and_the_same_each_time(cli, empty):
    words = ("plan", "odds", empty, "--drop", "0.28", "--gain", "0.34", "--noise", "0.01", "--want", "0", "--trials", "100", "--json")
    first, second = cli(*words), cli(*words)
    assert first.exit_code == 0, first.output
    assert first.stdout == second.stdout
    found = json.loads(first.stdout)
    assert [row["ttft_p50_drop"] for row in found["expected"]] == ["0.28"] * 3
    assert found["trials"] == 100
    assert found["noise"] == {"run": "0.01", "request": "0.05", "autocorrelation": "0.5"}


def test_odds_speak_both_languages_and_name_the_runs_that_are_needed(cli, empty):
    words = ("plan", "odds", empty, "--drop", "0.32", "--gain", "0.345", "--noise", "0.005", "--trials", "100")
    en, zh = cli(*words, "--lang", "en").stdout, cli(*words, "--lang", "zh-CN").stdout
    assert "A pass with a chance of at least 90.0 % takes" in en
    assert "要使通过概率不低于 90.0 %" in zh
    assert [line.split()[0] for line in zh.splitlines()[1:6]] == ["通过", "有条件通过", "不通过", "无法判定", "无效"]
    assert [line.split()[0] for line in en.splitlines()[1:6]] == ["pass", "conditional", "fail", "inconclusive", "invalid"]


def test_odds_of_another_rule_and_number_of_pairs_can_be_asked(cli, empty):
    found = json.loads(cli("plan", "odds", empty, "--rule", "interval", "--pairs", "4", "--want", "0", "--trials", "100", "--json").stdout)
    assert (found["rule"], found["pairs"]) == ("interval", 4)


@pytest.mark.parametrize(
    "words",
    [("--drop", "28"), ("--drop", "x"), ("--noise", "NaN"), ("--rule", "best"), ("--want", "1"), ("--trials", "5"), ("--autocorrelation", "1")],
)
def test_a_wrong_option_is_a_usage_error_and_no_figure(cli, empty, words):
    result = cli("plan", "odds", empty, *words)
    assert result.exit_code == 2  # the command line turns it into 64
    assert result.stdout == ""


def test_odds_of_an_unusable_plan_are_refused_by_field(cli, tmp_path):
    (tmp_path / "bad.yaml").write_text("expected: {ttft_p50_drop: {64: 0.3}}\n")
    result = cli("plan", "odds", tmp_path / "bad.yaml")
    assert result.exit_code == 65
    assert "expected.ttft_p50_drop: tier 64 is not measured" in result.output


def test_plan_check_keeps_the_hash_alone_on_standard_output_and_warns_beside_it(cli, empty):
    result = cli("plan", "check", empty, "--lang", "zh-CN")
    assert result.stdout.strip().startswith("sha256:")
    assert "近乎抛硬币" in result.stderr
    assert "余量过薄" in result.stderr
    found = json.loads(cli("plan", "check", empty, "--json").stdout)
    assert found["odds"]["plan_hash"] == found["hash"]


@pytest.mark.parametrize(("variation", "alarms"), [("0.02", True), ("0.001", False)])
def test_plan_check_warns_of_limits_that_chance_alone_breaches_at_the_plans_own_variation(cli, tmp_path, variation, alarms):
    file = tmp_path / "plan.yaml"
    file.write_text(f"expected: {{run_variation: {variation}}}\n")
    en, zh = (cli("plan", "check", file, "--lang", language).stderr for language in ("en", "zh-CN"))
    assert ("validity.placebo_gain_max of 5.00 %" in en and "or with arms.controls" in en) is alarms
    assert ("仅因偶然" in zh and "arms.controls 设为" in zh) is alarms
