"""Write docs/checks.md from the declarations of the gates; `--check` says instead whether it is stale (exit 1)."""

from __future__ import annotations

import sys
from pathlib import Path

from gates.describe import page
from gates.plan import parse_plan

PAGE = Path(__file__).parents[1] / "docs/checks.md"


def main(words: list[str]) -> int:
    """Write the page, or compare it."""
    text = page(parse_plan())
    if "--check" in words:
        fresh = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        print("docs/checks.md is fresh" if fresh else "docs/checks.md is stale: run .venv/bin/python -m tools.checks_page")
        return int(not fresh)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
