"""docs/importing-results.md is true: its tables are the declarations, and every problem that a bench reader names stands in it."""

from __future__ import annotations

import re

from app.settings import ROOT
from tools import importing_page


def test_the_tables_are_what_is_declared() -> None:
    page = importing_page.PAGE.read_text(encoding="utf-8")
    assert page == importing_page.whole(page), "run: python tools/importing_page.py"


def test_every_problem_of_a_bench_reader_is_explained() -> None:
    page = importing_page.PAGE.read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "gates/readers/bench").glob("*.py"))
    codes = set(re.findall(r'trouble\(\s*"([a-z_0-9]+)"', sources))
    assert len(codes) > 15
    assert sorted(code for code in codes if f"`{code}`" not in page) == []
