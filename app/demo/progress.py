"""What a person sees while the demo runs: a line for each step, with what it is and how long it took."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "canceled": ("–", "yellow")}
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

    def gate(self, gate: str, title: str) -> None:
        """Begin a gate."""
        self.say(f"[bold]{gate}[/] {title}")

    def attempt(self, view: dict[str, Any]) -> None:
        """Show an attempt as it stands now."""
        for step in view["steps"]:
            if step["status"] in MARKS and step["id"] not in self._seen:
                self._seen.add(step["id"])
                mark, colour = MARKS[step["status"]]
                self.say(f"    [{colour}]{mark}[/] {step['title']['en']} [dim]{step['title']['zh-CN']}[/]")
        running = next((s for s in view["steps"] if s["status"] not in MARKS), None)
        if self._live and running:
            text = Text.assemble((self._clock(), "dim"), "      ", running["title"]["en"], (f"  {running['status']}", "dim"))
            if view["samples"]:
                text.append(f"  {view['samples']} samples", "dim")
            self._live.update(Spinner("dots", text=text))

    def _clock(self) -> str:
        seconds = int(time.monotonic() - self.started)
        return f"{seconds // 60:2d}:{seconds % 60:02d}"


def closing_table(console: Console, summary: dict[str, Any]) -> None:
    """Print the four verdicts, why, and where the reports are."""
    table = Table(title=f"engagement {summary['engagement']['state']}", title_justify="left", expand=False)
    table.add_column("gate")
    table.add_column("verdict")
    table.add_column("why")
    table.add_column("report")
    for gate, row in summary["gates"].items():
        text, colour = VERDICTS[row["verdict"]]
        why = row["blocked_by"]["en"] if row["blocked_by"] else "; ".join(r["en"] for r in row["reasons"][:2])
        if row["because"]:
            why = f"({', '.join(row['because'])}) {why}"
        table.add_row(gate, f"[{colour}]{text}[/]", why, "\n".join(row["reports"].values()))
    console.print(table)
