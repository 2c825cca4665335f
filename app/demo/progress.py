"""What a person sees while the demo runs: a line for each step, with when it ended; then a table. Both languages, at 80 columns and more."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from app.demo.remaining import about
from app.kit.words import word

MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "canceled": ("–", "yellow")}
MOST_REASONS = 2
VERDICTS = {
    "pass": ("● PASS 通过", "green"),
    "conditional": ("◐ CONDITIONAL 有条件通过", "yellow"),
    "fail": ("■ FAIL 不通过", "red"),
    "inconclusive": ("◇ INCONCLUSIVE 无法判定", "yellow"),
    "invalid": ("△ INVALID 无效", "magenta"),
    None: ("· none 无", "dim"),
}


class Progress:
    """Prints finished steps as lines and, on a terminal, the running one below them."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.started = time.monotonic()
        self._seen: set[str] = set()
        self._live = Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal else None

    def __enter__(self) -> Progress:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print one line with the time since the start."""
        self.console.print(f"[dim]{self._clock()}[/]  {text}")

    def both(self, en: str, zh: str, mark: str = "", colour: str = "") -> None:
        """Print a sentence in both languages: on one line, or on two where one is too narrow."""
        clock = self._clock()
        head = f"{clock}      {mark} " if mark else f"{clock}  "
        fits = cell_len(head) + cell_len(en) + 1 + cell_len(zh) <= self.console.width
        gap = " " if fits else "\n" + " " * cell_len(head)
        self.console.print(Text.assemble((clock, "dim"), (head[len(clock) :], colour), en, (gap + zh, "dim")))

    def gate(self, gate: str, title: str, left: float | None = None) -> None:
        """Begin a gate. `left`: about how many seconds the whole demo still takes, None where nothing tells."""
        self.say(f"[bold]{gate}[/] {title}" + (f"  [dim]{_left(left)}[/]" if left is not None else ""))

    def verdict(self, verdict: str | None, status: str) -> None:
        """End a gate: its verdict in both languages, or how the attempt ended without one."""
        text, colour = VERDICTS[verdict] if verdict else (f"· {_both('status', status)}", "red")
        self.say(f"    [bold {colour}]{text}[/]")

    def attempt(self, view: dict[str, Any], left: float | None = None) -> None:
        """Show an attempt as it stands now, and about how many seconds the whole demo still takes."""
        for step in view["steps"]:
            if step["status"] in MARKS and step["id"] not in self._seen:
                self._seen.add(step["id"])
                mark, colour = MARKS[step["status"]]
                self.both(step["title"]["en"], step["title"]["zh-CN"], mark, colour)
        running = next((s for s in view["steps"] if s["status"] not in MARKS), None)
        if self._live and running:
            text = Text.assemble((self._clock(), "dim"), "      ", running["title"]["en"], (f"  {_both('step', running['status'])}", "dim"))
            if view["samples"]:
                text.append(f"  {view['samples']} samples 样本", "dim")
            if left is not None:
                text.append(f"  {_left(left)}", "dim")
            self._live.update(Spinner("dots", text=text))

    def struck(self, killed: dict[str, Any]) -> None:
        """Say what was killed, by the ids of the processes."""
        workers, hosts = (", ".join(map(str, killed[part])) for part in ("workers", "hosts"))
        en = f"killed worker ({workers}) and playbook host ({hosts}) with SIGKILL"
        self.both(en, f"已用 SIGKILL 结束工作进程（{workers}）和剧本进程（{hosts}）", "!", "yellow")

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self.started)
        return f"{seconds // 60:2d}:{seconds % 60:02d}"


def closing_table(console: Console, summary: dict[str, Any], out: Path) -> None:
    """Print the four verdicts, why, and where the reports are."""
    engagement = summary["engagement"]
    state = _both("engagement", engagement["state"])
    table = Table(title=f"{engagement['code']}: {state}. Files below 文件位于 {out}", title_justify="left", show_lines=True)
    for name in ("gate 门禁", "verdict 判定", "why 理由", "report 报告"):
        table.add_column(name.replace(" ", "\n", 1), overflow="fold")
    for gate, row in summary["gates"].items():
        text, colour = VERDICTS[row["verdict"]]
        name, _, chinese = text.rpartition(" ")
        why = Text("\n").join([Text(_why(row, "en")), Text(_why(row, "zh-CN"), "dim")])
        table.add_row(gate, Text(f"{name}\n  {chinese}", colour), why, Text("\n".join(row["reports"].values())))
    console.print(table)


def judge_again(summary: dict[str, Any], out: Path) -> str:
    """Return a command that can be typed as it stands: it judges the main gate's bundle, else the last one there is; empty when there is none."""
    bundles = [row["bundle"] for row in summary["gates"].values() if row["bundle"]]
    chosen = summary["gates"]["G3"]["bundle"] or (bundles[-1] if bundles else None)
    if chosen is None:
        return ""
    program = Path(sys.executable).parent / "quadgate"
    near = program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program
    return shlex.join((str(near), "judge", str(out / chosen)))


def _left(seconds: float) -> str:
    """Return about how long the demo still takes, in both languages."""
    told = about(seconds)
    return f"{told.en} {told.zh}"


def _both(kind: str, value: str) -> str:
    """Return the word for a value in both languages."""
    return f"{word(kind, value, 'en')} {word(kind, value, 'zh_CN')}"


def _why(row: dict[str, Any], language: str) -> str:
    """Return at most two sentences that decided; one that only repeats another is left out."""
    if row["blocked_by"]:
        return str(row["blocked_by"][language])
    if row["run_status"] == "not_started":
        return {"en": "Not started.", "zh-CN": "未启动。"}[language]
    chosen: list[str] = []
    for reason in row["reasons"]:
        if len(chosen) < MOST_REASONS and not any(said in reason[language] for said in chosen):
            chosen.append(reason[language])
    because = [word("because", value, language.replace("-", "_")) for value in row["because"]]
    return (f"({', '.join(because)}) " if because else "") + ("" if language == "zh-CN" else " ").join(chosen)
