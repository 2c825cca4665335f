"""Writes the tables of docs/importing-results.md from the declarations of the benchmark clients. `--check` only says whether they are true."""

from __future__ import annotations

import sys
from pathlib import Path

from gates.readers.bench.declared import CLIENTS, NEVER_PROVEN, OWN_TITLES
from gates.readers.bench.problems import OF_A_COMPARISON, OF_A_FILE
from gates.rules.claim_table import TITLES
from gates.text import Text

PAGE = Path(__file__).resolve().parents[1] / "docs" / "importing-results.md"
MARKS = (
    ("<!-- problems: written by tools/importing_page.py -->\n", "<!-- end of problems -->\n"),
    ("<!-- tables: written by tools/importing_page.py -->\n", "<!-- end of tables -->\n"),
)


def tables() -> str:
    """Return the generated part of the page."""
    out = ["| tool | file | made from | TTFT is | failed requests | leaves open besides |", "|---|---|---|---|---|---|"]
    for c in CLIENTS.values():
        own = ", ".join(f"`{name}`" for name in c.own) or "-"
        out.append(f"| `{c.name}` | {_both(c.reads)} | {c.studied} | {_both(c.ttft)} | {_both(c.failures)} | {own} |")
    out += ["", "What no file of any client can prove, so every comparison lists it as unproven:", "", "| claim | |", "|---|---|"]
    out += [f"| `{name}` | {_both(TITLES[name])} |" for name in NEVER_PROVEN]
    out += ["", "What single clients leave open besides:", "", "| claim | |", "|---|---|"]
    out += [f"| `{name}` | {_both(title)} |" for name, title in OWN_TITLES.items()]
    return "\n".join(out) + "\n"


def problems() -> str:
    """Return the tables of problems: of one file, and of a comparison."""
    out = []
    for head, listed in (("of a file", OF_A_FILE), ("of a comparison", OF_A_COMPARISON)):
        out += [
            *([""] if out else []),
            f"| code {head} | what it says |",
            "|---|---|",
            *(f"| `{code}` | {_both(text)} |" for code, text in listed.items()),
        ]
    return "\n".join(out) + "\n"


def whole(page: str) -> str:
    """Return the page with its tables as the declarations say. Raises ValueError where a marker is missing."""
    for (first, last), made in zip(MARKS, (problems(), tables()), strict=True):
        before, begin, rest = page.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise ValueError(f"{PAGE.name} lacks a marker of its tables")
        page = before + begin + "\n" + made + "\n" + end + after
    return page


def main() -> int:
    """Write the page, or with --check return 1 where it is not as the declarations say."""
    page = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        return int(page != whole(page))
    PAGE.write_text(whole(page), encoding="utf-8")
    return 0


def _both(text: Text) -> str:
    return text.en if text.en == text.zh else f"{text.en}<br>{text.zh}"


if __name__ == "__main__":
    sys.exit(main())
