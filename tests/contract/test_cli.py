"""The contract of the command line: codes 1 to 4 are verdicts, so nothing else may ever end with them."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import typer
from rich.cells import cell_len

from app import cli
from app.commands import judge
from app.demo.options import DemoOptions, engagement_text, parse_fault
from app.kit.errors import BadInput
from app.settings import ROOT, settings
from gates.plan import load_yaml
from tests.bundles import g2_evidence
from tests.sample import filled

QUADGATE = [sys.executable, "-c", "from app.cli import main; main()"]
WRONG = [
    ["jugde", "bundle.zip"],
    ["judge"],
    ["judge", "one.zip", "two.zip"],
    ["read", "no-such-tool", "/dev/null"],
    ["read"],
    ["plan", "check", "/no/such/plan.yaml"],
    ["plan", "chekc"],
    ["demo", "--engine", "steam"],
    ["demo", "--until", "G5"],
    ["demo", "--soak", "soon"],
    ["demo", "--fault", "no-such-fault"],
    ["demo", "--fault", "slow-tier=very"],
    ["demo", "--engagement", "/no/such/engagement.yaml"],
    ["user", "add", "li.wei"],
    ["user", "add", "li.wei", "--name", "李伟", "--party", "nobody", "--role", "engineer"],
    ["audit", "verify", "--anchor", "yesterday"],
    ["serve", "--port", "eighty"],
]


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no notice of the language of whoever runs the tests."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def commands() -> list[list[str]]:
    """Return the words of every command, groups included."""

    def walk(node: typer.core.TyperGroup, words: list[str]) -> Iterator[list[str]]:
        for name, child in sorted(node.commands.items()):
            yield [*words, name]
            if hasattr(child, "commands"):
                yield from walk(child, [*words, name])

    return list(walk(typer.main.get_command(cli.build()), []))


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command line in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["quadgate", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code)


def test_help_lists_every_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == 0
    said = capsys.readouterr().out
    assert [name for name in cli.COMMANDS if name not in said] == []
    assert {words[0] for words in commands()} == set(cli.COMMANDS)


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_explains_itself(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, *words, "--help") == 0
    assert "Usage" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], *commands()], ids=lambda words: " ".join(words) or "quadgate")
def test_an_unknown_option_is_a_usage_error_in_every_command(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words, "--no-such-option") == cli.USAGE
    assert "--no-such-option" in capsys.readouterr().err


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_words_are_a_usage_error_with_a_sentence(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, *words) == cli.USAGE
    assert capsys.readouterr().err.strip()


@pytest.mark.parametrize(
    ("faults", "refused"),
    [(["missing-drive", "slow-tier"], True), (["unequal-work"], True), (["slow-tier=0", "worker-kill", "swapped-drive"], False)],
)
def test_a_fault_that_only_the_simulated_engine_can_have_is_refused_for_another_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, faults: list[str], refused: bool
) -> None:
    asked: list[DemoOptions] = []

    def started(options: DemoOptions, _console: object) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("app.commands.demo.run_demo", started)
    named = [part for fault in faults for part in ("--fault", fault)]
    code = run(monkeypatch, "demo", "--engine", "vllm-cpu", "--out", str(tmp_path), *named)
    assert (code, len(asked)) == ((cli.USAGE, 0) if refused else (cli.INTERRUPTED, 1))
    assert ("missing-drive" in capsys.readouterr().err) is refused  # the sentence names those that there are
    other = tmp_path / "engagement.yaml"  # the same for an engagement file of one's own
    other.write_text((ROOT / "app/demo/engagement-vllm-cpu.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    options = DemoOptions(out=tmp_path, engagement=other, faults=dict(parse_fault(fault) for fault in faults))
    with pytest.raises(BadInput, match="simulated engine") if refused else nullcontext():
        engagement_text(options)


def test_a_fault_of_our_own_is_70_and_says_how_to_see_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(judge, "read_bundle", broken)
    assert run(monkeypatch, "judge", str(tmp_path)) == cli.INTERNAL
    captured = capsys.readouterr()
    assert captured.err == "quadgate met an internal error: ZeroDivisionError: division by zero. QUADGATE_LOG=debug shows where.\n"
    assert captured.out == ""


@pytest.mark.parametrize(("value", "why"), [("abc", "it must be a whole number"), ("99999", "it is too large"), ("0", "it is too small")])
def test_a_setting_with_a_value_that_it_cannot_have_is_named_before_anything_starts(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str, why: str
) -> None:
    monkeypatch.setenv("QUADGATE_WEB_PORT", value)
    settings.cache_clear()
    assert run(monkeypatch, "up") == cli.REFUSED
    said = capsys.readouterr().err
    assert f"QUADGATE_WEB_PORT has a value that it cannot have ({why})" in said
    assert len(said.splitlines()) == 1


LOOKING = (
    ["user", "list"],
    ["audit", "verify"],
    ["retention"],
    ["retention", "--apply"],
    ["backup", "/nowhere/at/all"],
    ["targets", "remove", "DEMO", "--yes"],
    ["attempt", "judge", "0199-x"],
)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder that is not there, for a terminal in Chinese."""
    monkeypatch.setenv("QUADGATE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("QUADGATE_DATABASE_URL", "")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    settings.cache_clear()
    yield tmp_path / "state"
    settings.cache_clear()


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_where_there_is_no_database_a_command_says_what_to_do_and_makes_nothing(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(monkeypatch, *words) == cli.REFUSED
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"{nowhere} 中没有 Quadgate 数据库")
    assert "quadgate up" in told.err
    assert not nowhere.exists()


def test_to_ask_for_the_health_or_the_revision_of_nothing_makes_nothing(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "db", "current") == 0
    assert run(monkeypatch, "health") == 65
    assert not nowhere.exists()


def test_a_database_without_our_tables_is_said_in_a_sentence_and_no_sql(tmp_path: Path) -> None:
    (tmp_path / "quadgate.db").touch()
    environment = {**os.environ, "QUADGATE_STATE_DIR": str(tmp_path), "QUADGATE_DATABASE_URL": "", "LC_ALL": "zh_CN.UTF-8"}
    done = subprocess.run([*QUADGATE, "audit", "verify"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (cli.REFUSED, "")
    assert f"状态目录 {tmp_path} 的数据库中没有本版本的数据表" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_said_in_chinese_with_the_systems_own_words(nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run(monkeypatch, "serve", "--port", str(taken.getsockname()[1])) == cli.REFUSED
    assert "地址已被占用（Address already in use）" in capsys.readouterr().err


def test_a_refusal_is_65_and_one_sentence(state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "user", "token", "nobody", "--name", "a script") == cli.REFUSED
    assert capsys.readouterr().err == "There is no user nobody.\n"


def test_what_cannot_be_read_is_no_verdict_but_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "judge", str(tmp_path / "absent.zip")) == judge.UNREADABLE


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(judge, "read_bundle", interrupted)
    assert run(monkeypatch, "judge", str(tmp_path)) == cli.INTERRUPTED


def test_the_installed_program_ends_with_the_same_codes() -> None:
    for words, code in ((["--help"], 0), (["judge", "--jsno"], cli.USAGE)):
        ended = subprocess.run([*QUADGATE, *words], cwd=cli.__file__.removesuffix("app/cli.py"), capture_output=True, text=True, check=False)
        assert ended.returncode == code, ended.stderr
        assert ended.stdout if code == 0 else ended.stderr


def test_a_refused_input_names_each_problem_in_the_language_of_the_terminal(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("user", "add", "sun.yue", "--name", "孙悦", "--party", "vendor", "--role", "engineer", "--password-stdin")
    for language, sentence in (("C.UTF-8", "The password needs 12 to 256 characters."), ("zh_CN.UTF-8", "密码须为 12 到 256 个字符。")):
        monkeypatch.setenv("LC_ALL", language)
        monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
        assert run(monkeypatch, *words) == cli.REFUSED
        assert sentence in capsys.readouterr().err


def test_without_a_terminal_the_question_for_a_password_says_how_to_give_one(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run(monkeypatch, "user", "add", "sun.yue", "--name", "孙悦", "--party", "vendor", "--role", "engineer") == cli.REFUSED
    assert "--password-stdin" in capsys.readouterr().err


@pytest.mark.parametrize("away", ["| true", "2>&1 | true", "> /dev/full", ">&-"])
def test_an_output_that_nobody_takes_never_ends_with_a_verdict_that_is_not_the_bundles_own(away: str, tmp_path: Path) -> None:
    passing = g2_evidence().zip(tmp_path / "G2.zip")
    quadgate = f"{sys.executable} -c 'from app.cli import main; main()'"
    for words, own in ((f"judge {passing}", 0), ("judge /no/such/bundle", 4)):
        done = subprocess.run(["bash", "-c", f"{quadgate} {words} {away}; exit ${{PIPESTATUS[0]}}"], cwd=ROOT, capture_output=True, timeout=120)
        assert done.returncode in (own, cli.NO_READER, cli.INTERNAL), done.stderr
        assert b"Traceback" not in done.stderr


CODES = {"manifest", "plan", "judge", "attempt", "pass", "fail", "conditional", "inconclusive", "invalid", "breached", "unknown", "not"}


def test_a_judgement_is_printed_in_one_language_its_verdicts_claims_and_arms_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = g2_evidence()
    evidence.json("run-2", "client.json", lambda told: told["calibration"].update(measured_ttft_p50_ns=52_000_000))
    path, told = evidence.zip(tmp_path / "G2.zip"), {}
    for language in ("en", "zh-CN"):
        assert run(monkeypatch, "judge", str(path), "--lang", language) == 3
        told[language] = capsys.readouterr().out.splitlines()
    en, zh = ("\n".join(told[language]) for language in told)
    assert re.search(r"^invalid +g2\.", en, re.MULTILINE)
    assert re.search(r"^breached +\w+ \(baseline\): ", en, re.MULTILINE)
    assert re.search(r"^无效 +g2\.", zh, re.MULTILINE)
    assert re.search(r"^违反 +\w+（基线）：", zh, re.MULTILINE)
    assert re.search(r"^判定程序 +\S+  规则 sha256:", zh, re.MULTILINE)
    assert [line for line in told["zh-CN"] if line.split(" ")[0] in CODES] == []
    columns = {cell_len(line[: line.index("g2.")]) for line in told["zh-CN"] if " g2." in line}
    assert columns == {14}  # a Chinese character takes two columns


@pytest.mark.parametrize("text", ["", "[", "engagement: 4", "targets: []", "targets: {engine: {port: abc}}", "plan: 7"])
def test_a_demo_of_a_file_that_is_no_engagement_is_refused_before_anything_starts(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "engagement.yaml").write_text(text)
    monkeypatch.setenv("QUADGATE_STATE_DIR", str(tmp_path / "state"))  # the demo sets its own; the test's comes back
    assert run(monkeypatch, "demo", "--engagement", str(tmp_path / "engagement.yaml"), "--out", str(tmp_path / "out")) == cli.REFUSED
    assert "The engagement file cannot be used" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_demo_of_real_targets_is_refused_before_it_signs_anything_for_both_parties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "engagement.yaml").write_text(filled(), encoding="utf-8")
    assert run(monkeypatch, "demo", "--engagement", str(tmp_path / "engagement.yaml"), "--out", str(tmp_path / "out")) == cli.REFUSED
    assert "simulated targets only" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_demo_in_a_place_that_cannot_hold_it_is_refused_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("QUADGATE_STATE_DIR", str(tmp_path / "state"))
    settings.cache_clear()
    assert run(monkeypatch, "demo", "--out", str(tmp_path / "file")) == cli.REFUSED
    settings.cache_clear()
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_every_decimal_of_a_demos_file_stays_what_it_is(tmp_path: Path) -> None:
    shipped = ROOT / "app/demo/engagement.yaml"
    given = load_yaml(engagement_text(DemoOptions(out=tmp_path, seed=1)))
    meant = load_yaml(shipped.read_text(encoding="utf-8"))
    given["targets"]["engine"]["port"] = meant["targets"]["engine"]["port"]
    meant["plan"].setdefault("decision", {})["seed"] = 1
    assert given == meant
