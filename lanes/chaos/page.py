"""What the lane printed, put into docs/chaos.md with what it was printed by: a table without its commit would soon speak of another program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.settings import ROOT
from lanes.chaos.checks import patience
from lanes.chaos.table import Table

PAGE = ROOT / "docs" / "chaos.md"
MARKS = "<!-- printed by make chaos: begin -->", "<!-- printed by make chaos: end -->"


def lines(title: str, table: Table, control: Table | None, short_of: Sequence[str]) -> list[str]:
    """Return the block of the page. `title`: what ran, as printed above the table; `short_of`: sentences that say why the run was not whole."""
    held = "nothing was lost, doubled or judged wrongly" if table.clean else f"**not held**: {table.total.total()} findings"
    where = f"{os.cpu_count()} cores, `QUADGATE_CHAOS_SLOWER={patience():g}`"
    told = [f"{_version()}, on {datetime.now(UTC):%Y-%m-%d}, {where}: {held}.", *(f"**Not whole**: {text}" for text in short_of)]
    found = [*told, "", f"    {title}", "", *(f"    {line}" for line in table.lines())]
    if control is not None:
        found += ["", "The control:", "", *(f"    {line}" for line in control.lines())]
    return found


def _version() -> str:
    """Return which commit ran, and whether there were changes beside it."""
    try:
        git = ["git", "-C", str(ROOT)]
        commit = subprocess.run([*git, "log", "-1", "--format=%h"], capture_output=True, text=True, check=True).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "A version that is no commit"
    return f"Commit `{commit}`" + (" with changes that were not committed" if changed else "")


def write(block: Sequence[str], page: Path = PAGE) -> None:
    """Put the block between the marks of the page. Raises ValueError where they are not there."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(MARKS[0])
    _, end, after = rest.partition(MARKS[1])
    if not begin or not end:
        raise ValueError(f"{page} lacks the lines {MARKS[0]} and {MARKS[1]}, between which the table is to stand")
    page.write_text("\n".join([before + MARKS[0], "", *block, "", MARKS[1] + after]), encoding="utf-8")
