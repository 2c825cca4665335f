"""The contract of the command line: codes 1 to 4 are verdicts, so nothing else may ever end with them."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from app import cli
from app.commands import judge

QUADGATE = [sys.executable, "-c", "from app.cli import main; main()"]


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


@pytest.mark.parametrize(
    "words",
    [
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
    ],
    ids=" ".join,
)
def test_wrong_words_are_a_usage_error_with_a_sentence(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, *words) == cli.USAGE
    assert capsys.readouterr().err.strip()


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
