"""Find what the catalogue lacks and what it keeps in vain: `python -m app.kit.catalogue` says all of it at once.

Python is read by its syntax tree and templates by Jinja's, so that a sentence put together from pieces, chosen by an `if`, or
nested in another call is found, and a sentence in a comment is not.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from babel.messages.pofile import read_po
from jinja2 import Environment, nodes

from app.kit.i18n import LOCALES, catalogue_path
from app.settings import ROOT

PYTHON = frozenset({"N_", "_", "translate", "pair", "lookup", "gettext"})
TEMPLATE = frozenset({"t", "_", "gettext", "translate"})
_PERCENT = re.compile(r"%\((\w+)\)[sd]")


def extract(root: Path = ROOT) -> dict[str, list[str]]:
    """Return every msgid of the program with the places where it stands."""
    found: dict[str, list[str]] = {}
    for path in sorted((root / "app").rglob("*.py")):
        for msgid, line in python_msgids(path.read_text(encoding="utf-8")):
            found.setdefault(msgid, []).append(f"{path.relative_to(root)}:{line}")
    for path in sorted((root / "templates").rglob("*.html")):
        for msgid, line in template_msgids(path.read_text(encoding="utf-8")):
            found.setdefault(msgid, []).append(f"{path.relative_to(root)}:{line}")
    return found


def python_msgids(source: str) -> Iterator[tuple[str, int]]:
    """Yield the sentences that Python code marks, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args and _called(node.func) in PYTHON:
            yield from _constants(node.args[0])


def _called(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


def _constants(value: ast.expr) -> Iterator[tuple[str, int]]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
        yield value.value, value.lineno
    elif isinstance(value, ast.IfExp):
        yield from _constants(value.body)
        yield from _constants(value.orelse)


def template_msgids(source: str) -> Iterator[tuple[str, int]]:
    """Yield the sentences that a template marks, with their lines: `{{ t("...") }}` and `{% trans %}`."""
    environment = Environment(autoescape=True, extensions=["jinja2.ext.i18n", "jinja2.ext.do"])
    for call in environment.parse(source).find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in TEMPLATE and call.args:
            yield from _template_constants(call.args[0])


def _template_constants(value: nodes.Node) -> Iterator[tuple[str, int]]:
    if isinstance(value, nodes.Const) and isinstance(value.value, str) and value.value:
        yield value.value, value.lineno
    elif isinstance(value, nodes.CondExpr):
        yield from _template_constants(value.expr1)
        if value.expr2 is not None:
            yield from _template_constants(value.expr2)


def problems(locale: str, root: Path = ROOT) -> list[str]:
    """Return one line for each sentence that is missing, kept in vain, empty, or loses a placeholder."""
    used = extract(root)
    with catalogue_path(locale).open("rb") as file:
        parsed = read_po(file, locale=locale, abort_invalid=True)
    kept = {str(message.id): str(message.string) for message in parsed if message.id}
    found = [f"missing: {msgid!r} ({used[msgid][0]})" for msgid in used if msgid not in kept]
    found += [f"kept in vain: {msgid!r}" for msgid in kept if msgid not in used]
    found += [f"empty: {msgid!r}" for msgid, sentence in kept.items() if not sentence.strip()]
    found += [f"placeholders differ: {msgid!r} -> {s!r}" for msgid, s in kept.items() if s.strip() and placeholders(msgid) != placeholders(s)]
    return found


def placeholders(sentence: str) -> set[str]:
    """Return the names of the placeholders of a sentence, of either style; a broken one counts as itself."""
    try:
        named = {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}
    except ValueError:
        named = {f"broken: {sentence}"}
    return named | set(_PERCENT.findall(sentence))


def main() -> int:
    """Print all problems of all catalogues; with --stub, print the missing entries ready to be filled in."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stub", metavar="PART", help="print empty entries for what is missing from files whose path contains PART")
    options = parser.parse_args()
    found = 0
    for locale in LOCALES:
        if locale == "en":
            continue
        lines = problems(locale)
        found += len(lines)
        if options.stub is None:
            sys.stdout.writelines(f"{locale}: {line}\n" for line in lines)
        else:
            missing = {line.split(": ", 1)[1].rsplit(" (", 1)[0] for line in lines if line.startswith("missing: ")}
            stubs = [(msgid, places) for msgid, places in extract().items() if repr(msgid) in missing and options.stub in places[0]]
            sys.stdout.writelines(f'#: {places[0]}\nmsgid {_quoted(msgid)}\nmsgstr ""\n\n' for msgid, places in stubs)
    return 1 if found else 0


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


if __name__ == "__main__":
    sys.exit(main())
