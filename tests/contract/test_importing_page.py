"""docs/importing-results.md is true: its tables are the declarations, and every problem that a file of a client can have stands in it."""

from __future__ import annotations

import ast

from app.settings import ROOT
from gates.readers.bench.declared import CLIENTS
from gates.readers.bench.problems import OF_A_COMPARISON, OF_A_FILE
from gates.readers.registry import read
from tests.unit.readers.test_fixtures import FIXTURES
from tools import importing_page


def test_the_tables_are_what_is_declared() -> None:
    page = importing_page.PAGE.read_text(encoding="utf-8")
    assert page == importing_page.whole(page), "run: python tools/importing_page.py"


# What a client's file is read with, and what compares files.
NAMED_BY = ("readers/bench/*.py", "readers/common.py", "readers/plausible.py", "readers/registry.py", "importing.py", "comparing.py", "compare.py")


def named() -> set[str]:
    """Return every code that these sources give to a problem: the first word of a trouble or a problem, and of what plausible.doubt returns."""
    found = set()
    for pattern in NAMED_BY:
        paths = list((ROOT / "gates").glob(pattern))
        assert paths, pattern
        for path in paths:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                first: ast.expr | None = None
                if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in (
                    "trouble",
                    "_trouble",
                    "Trouble",
                    "Problem",
                ):
                    first = next((arg for arg in node.args if not isinstance(arg, ast.Name)), None)
                elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and path.name == "plausible.py":
                    first = node.value.elts[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    return found


def test_every_problem_that_a_file_or_a_comparison_can_have_is_declared_and_no_other() -> None:
    assert named() == {*OF_A_FILE, *OF_A_COMPARISON}


def test_every_declared_problem_stands_on_the_page_in_both_languages() -> None:
    page = importing_page.PAGE.read_text(encoding="utf-8")
    for code, text in {**OF_A_FILE, **OF_A_COMPARISON}.items():
        assert page.count(f"| `{code}` | {text.en}<br>{text.zh} |") == 1


def test_every_known_bad_file_of_a_client_has_problems_that_are_declared() -> None:
    for path in (path for name in CLIENTS for path in (FIXTURES / name).glob("*")):
        assert {problem.code for problem in read(path.parent.name, path.read_bytes()).problems} <= {*OF_A_FILE}
