"""What a person sees of the demo: both languages, whatever the width of the window."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from app.demo.progress import Progress, closing_table, judge_again

REASON = {"en": "placebo, c8: 6.158 requests in flight on average where 8 must be.", "zh-CN": "placebo，c8：平均在途 6.158 个请求，应为 8。"}
REPEATED = {language: f"Little's law: {text}" for language, text in REASON.items()}


def row(verdict: str | None, *reasons: dict[str, str], because: tuple[str, ...] = (), blocked_by: dict[str, str] | None = None) -> dict[str, Any]:
    reports = {"en": "reports/G3.en.pdf", "zh-CN": "reports/G3.zh-CN.pdf"} if verdict else {}
    return {
        "verdict": verdict,
        "because": list(because),
        "run_status": "finished" if verdict else "not_started",
        "blocked_by": blocked_by,
        "reasons": list(reasons),
        "reports": reports,
    }


def shown(width: int) -> str:
    kept = {"en": "G3 comes first.", "zh-CN": "须先通过 G3。"}
    gates = {"G2": row("conditional", REASON, because=("guard",)), "G3": row("invalid", REASON, REPEATED), "G4": row(None, blocked_by=kept)}
    out = io.StringIO()
    closing_table(Console(width=width, file=out), {"engagement": {"code": "DEMO", "state": "active"}, "gates": gates}, Path("out/demo"))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_closing_table_fits_and_keeps_the_paths_whole(width: int) -> None:
    lines = shown(width).splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert sum("reports/G3.zh-CN.pdf" in line for line in lines) == 2
    assert "out/demo" in lines[0]


def test_the_closing_table_says_why_in_both_languages_and_nothing_twice() -> None:
    text = shown(300)
    assert text.count(REASON["en"]) == 2  # once for each gate
    assert text.count(REASON["zh-CN"]) == 2
    assert "inside the guard band" in text
    assert "落在保护带内" in text
    assert "须先通过 G3。" in text


@pytest.mark.parametrize(("there", "named"), [(("G1", "G2", "G3", "G4"), "G3"), (("G1", "G2"), "G2"), ((), "")])
def test_the_command_that_judges_again_can_be_typed_and_names_the_main_gate_when_it_ran(
    there: tuple[str, ...], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(Path.cwd() / ".venv/bin/python"))
    gates = {gate: {"bundle": f"bundles/{gate}.zip" if gate in there else None} for gate in ("G1", "G2", "G3", "G4")}
    told = judge_again({"gates": gates}, Path("out/demo"))
    assert told == (f".venv/bin/quadgate judge out/demo/bundles/{named}.zip" if named else "")


@pytest.mark.parametrize(("width", "lines"), [(80, 2), (120, 1)])
def test_a_step_stands_on_one_line_or_with_its_chinese_title_below_it(width: int, lines: int) -> None:
    out = io.StringIO()
    Progress(Console(width=width, file=out)).both("Survey of hardware, firmware, health and links", "硬件、固件、健康与链路调查", "✓", "green")
    found = out.getvalue().splitlines()
    assert len(found) == lines
    assert max(cell_len(line) for line in found) <= width


def test_what_moves_and_what_went_wrong_are_said_in_both_languages_too() -> None:
    out = io.StringIO()
    progress = Progress(Console(width=200, file=out, force_terminal=True, color_system=None))
    with progress:
        title = {"en": "Run 2: candidate", "zh-CN": "第 2 轮：候选方"}
        progress.attempt({"steps": [{"id": "s", "title": title, "status": "collecting"}], "samples": 41})
        progress.struck({"workers": [11, 12], "hosts": [13]})
        progress.verdict(None, "error")
    said = out.getvalue()
    for words in ("collecting evidence 采集证据", "41 samples 样本", "· Error 出错"):
        assert words in said
    assert "killed worker (11, 12) and playbook host (13) with SIGKILL 已用 SIGKILL 结束工作进程（11, 12）和剧本进程（13）" in " ".join(said.split())
