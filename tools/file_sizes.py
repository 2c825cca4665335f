"""Refuse source files over 500 lines, and name those over 300: a file that long holds two things."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KINDS = {".py", ".yml", ".yaml", ".typ", ".css", ".js", ".html", ".sh", ".j2"}
FREE = ("requirements/", "app/web/static/vendor/", "migrations/versions/")


def main() -> int:
    """Print long files; exit 1 when one is too long."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True, text=True).stdout.split("\0")
    worst = 0
    for name in filter(None, listed):
        path = Path(name)
        if path.suffix not in KINDS or name.startswith(FREE) or not path.is_file():
            continue
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > 300:
            print(f"{lines:5d} {name}{'  too long (500 at most)' if lines > 500 else ''}")
        worst = max(worst, lines)
    return int(worst > 500)


if __name__ == "__main__":
    sys.exit(main())
