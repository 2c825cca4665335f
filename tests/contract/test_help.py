"""The command line explains itself, and what is wrong with its words, in Chinese where the terminal asks for it; English is left alone."""

from __future__ import annotations

import io
import os
import re
import subprocess
from itertools import pairwise

import pytest
import typer
from rich.cells import cell_len
from typer import rich_utils

from app import cli
from app.commands.help import msgid_of, texts
from app.commands.help_panels import TITLES, breaks
from app.commands.language import ask
from app.demo.options import FAULTS
from app.kit.i18n import N_, catalogue
from app.settings import ROOT
from tests.contract.test_cli import QUADGATE, WRONG, commands, run

ENGLISH = re.compile(r"[A-Za-z]{2,}(?: [a-z]{2,}){2}")  # three words in a row, which no name or unit is
OURS = [*WRONG, ["judge", "--jsno"], ["judge", "--expect-manifest"], ["judge", "--json=3"], ["demo", "--soak", "-1"], ["plan", "check", "."]]


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the terminal ask for Chinese."""
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")


def english_in(said: str, words: list[str]) -> list[str]:
    """Return what reads as English, the words of the command line itself and names with a hyphen left out."""
    for own in (" ".join(["quadgate", *words]), "quadgate " + " ".join(words[:2]), *FAULTS):
        said = said.replace(own, "")
    return ENGLISH.findall(re.sub(r"\S*-\S*", "", said))


def test_every_text_of_every_command_has_a_chinese_entry() -> None:
    found = [text for _, _, text in texts(typer.main.get_command(cli.build()))]
    assert len(found) > len(commands())
    assert [text for text in found if msgid_of(text) not in catalogue("zh_CN")] == []


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("words", [[], *commands()], ids=lambda words: " ".join(words) or "quadgate")
def test_the_help_of_every_command_is_chinese_in_a_chinese_terminal(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words, "--help") == 0
    said = capsys.readouterr().out
    assert "用法：quadgate" in said
    assert english_in(said, words) == []
    assert "…" not in said  # nothing is cut off


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("words", OURS, ids=" ".join)
def test_a_usage_error_is_chinese_in_a_chinese_terminal(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words) == cli.USAGE
    said = capsys.readouterr().err
    assert "错误：" in said
    assert english_in(said, words) == []


def test_a_chinese_terminal_of_a_real_process_reads_no_english_sentence() -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("LC_ALL", "LC_MESSAGES")} | {"LANG": "zh_CN.UTF-8"}
    words = ["plan", "odds"]
    done = subprocess.run([*QUADGATE, *words, "--help"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert "在封存计划之前" in done.stdout
    assert english_in(done.stdout, words) == []


def test_english_is_what_typer_says_itself_also_after_a_chinese_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for language in ("C.UTF-8", "zh_CN.UTF-8", "C.UTF-8"):
        monkeypatch.setenv("LC_ALL", language)
        run(monkeypatch, "judge", "--help")
        told.append(capsys.readouterr().out)
    assert told[0] == told[2] != told[1]
    assert "Show this message and exit." in told[0]


def test_the_titles_that_are_replaced_are_those_that_typer_has() -> None:
    assert {name: getattr(rich_utils, name) for name in TITLES} == TITLES


def test_a_chinese_line_ends_between_characters_never_before_a_closing_mark() -> None:
    name = "guarded-with-a-long-name。"
    line = f"判定规则（代替计划中的规则）：simple、interval 或 {name}各档位 TTFT p50 的“真实”降幅；默认取计划中的值。"
    for width in range(6, 100):
        parts = [line[a:b] for a, b in pairwise([0, *breaks(line, width), len(line)])]
        assert max(cell_len(part.rstrip()) for part in parts) <= width
        if width >= cell_len(name):  # what is longer than a line is cut anywhere
            assert [part for part in parts if part[0] in "）：、；。”" or part.rstrip()[-1] in "（“" or ("guarded" in part) != (name in part)] == []


def test_only_a_yes_is_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer in ("y", "YES", "是"):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
        ask(N_("End what runs for {code} on {hosts}, and remove its files there?"), code="HT-1", hosts="a")
    for answer in ("", "n", "maybe", "否"):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
        with pytest.raises(typer.Abort):
            ask(N_("End what runs for {code} on {hosts}, and remove its files there?"), code="HT-1", hosts="a")
