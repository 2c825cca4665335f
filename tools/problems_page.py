"""Writes app/api/problem_codes.json and docs/problems.md from the errors that the code declares. `--check` only says whether they are true."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from app.api.problems import OTHER, SENTENCES  # noqa: E402
from app.kit.i18n import translate  # noqa: E402
from gates.pipeline_facts import State  # noqa: E402
from gates.text import Text  # noqa: E402

CODES, PAGE = ROOT / "app" / "api" / "problem_codes.json", ROOT / "docs" / "problems.md"
BASES = {"QuadgateError": 500}
STATES = (State.STOPPED, State.NOT_CONCLUDED, State.CONCLUDED, State.CLOSED)  # `Refused(str(state), why)`: where the engagement stands forbids it
WHY_STATE = Text("Where the joint test stands forbids it; the answer says why.", "联测项目当前的状态不允许；答复中说明原因。")
ELSEWHERE = Text("The answer says why: the sentence is made of the case at hand.", "答复中说明原因：语句由具体情况组成。")
HEAD = """# Problems of the API

Every error of `/api/v1` is `application/problem+json`. Its `type` is `/api/v1/docs#problem-CODE`, a list like this one that the service itself
serves, in the reader's language. `code` is stable; programs go by it and not by the sentence. `…` stands for what the sentence names.
Written by `tools/problems_page.py`.

| code | status | sentences |
|---|---|---|
"""
Found = dict[str, dict[str, Any]]


def declared() -> Found:
    """Return every code that an error is raised with: its HTTP statuses and its sentences in both languages."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for folder in ("app", "gates") for path in sorted((ROOT / folder).rglob("*.py"))}
    statuses = _classes(trees.values())
    found: Found = {}
    for status, (code, sentence) in SENTENCES.items():
        _add(found, code, status, [_pair(sentence)])
    _add(found, OTHER[0], 0, [_pair(OTHER[1])])
    for path, tree in trees.items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for function, call, name in _calls(tree):
            own = statuses.get(name) if name != "Refusal" else 409
            if own is None or not call.args:
                continue
            code, told = call.args[0], _sentences(call.args[1], function, module) if len(call.args) > 1 else []
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                _add(found, code.value, own, told)
            elif ast.unparse(code) == "str(state)":
                for state in STATES:
                    _add(found, str(state), 409, [WHY_STATE])
            elif isinstance(code, ast.Name) and name == "Refusal":  # a table of (condition, code, sentence) in the same function
                for word, text in _rows(function):
                    _add(found, word, own, _sentences(text, function, module))
    for entry in found.values():
        entry["told"] = entry["told"] or [ELSEWHERE.json()]
    return dict(sorted(found.items()))


def _classes(trees: Any) -> dict[str, int]:
    """Return the status of each class of errors, by its own name."""
    known = dict(BASES)
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for _ in range(4):  # as deep as they inherit
        for node in nodes:
            base = next((known[b.id] for b in node.bases if isinstance(b, ast.Name) and b.id in known), None)
            if base is not None:
                own = [a.value for a in node.body if isinstance(a, ast.Assign | ast.AnnAssign) and "status" in ast.unparse(a).split("=")[0]]
                known[node.name] = next((v.value for v in own if isinstance(v, ast.Constant)), base)  # type: ignore[assignment]
    return known


def _calls(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call, str]]:
    """Yield each call with what it stands in and the name that is called; `super().__init__` of a class is a call of the class."""
    for holder in ast.walk(tree):
        if isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for call in (node for node in ast.walk(holder) if isinstance(node, ast.Call)):
                if isinstance(call.func, ast.Name):
                    yield holder, call, call.func.id
                elif isinstance(holder, ast.ClassDef) and ast.unparse(call.func) == "super().__init__":
                    yield holder, call, holder.name


def _sentences(node: ast.expr, function: ast.AST, module: str) -> list[Text]:
    """Return the sentences that an expression may be: a marked msgid, a Text, a choice between two, or a name that stands for one."""
    if isinstance(node, ast.IfExp):
        return _sentences(node.body, function, module) + _sentences(node.orelse, function, module)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fill":
            return _sentences(node.func.value, function, module)
        words = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if ast.unparse(node.func) == "N_" and words:
            return [_pair(words[0])]
        return [Text(*words)] if ast.unparse(node.func) == "Text" and len(words) == 2 else []
    if isinstance(node, ast.Name):
        values = [a.value for a in ast.walk(function) if isinstance(a, ast.Assign) and any(ast.unparse(t) == node.id for t in a.targets)]
        if values:
            return [text for value in values if not isinstance(value, ast.Name) for text in _sentences(value, function, module)]
        value = getattr(importlib.import_module(module), node.id, None)
        return [value] if isinstance(value, Text) else [_pair(value)] if isinstance(value, str) else []
    return []


def _rows(function: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for row in (node for node in ast.walk(function) if isinstance(node, ast.Tuple) and len(node.elts) >= 3):
        code = row.elts[1]
        if isinstance(code, ast.Constant) and isinstance(code.value, str):
            yield code.value, row.elts[2]


def _pair(msgid: str) -> Text:
    return Text(translate(msgid, "en"), translate(msgid, "zh_CN"))


def _add(found: Found, code: str, status: int, told: list[Text]) -> None:
    entry = found.setdefault(code, {"status": [], "told": []})
    entry["status"] = sorted({*entry["status"], *([status] if status else [])})
    entry["told"] += [text.json() for text in told if text.json() not in entry["told"]]


def as_json(found: Found) -> str:
    """Return the file that the service reads."""
    return json.dumps(found, ensure_ascii=False, indent=1) + "\n"


def as_page(found: Found) -> str:
    """Return the page of the documentation."""
    from app.api.codes import unfilled

    rows = []
    for code, entry in found.items():
        told = "<br>".join(f"{unfilled(text['en'])}<br>{unfilled(text['zh-CN'])}" for text in entry["told"]).replace("\n", " ").replace("|", "\\|")
        rows.append(f'| <a id="problem-{code}"></a>`{code}` | {", ".join(map(str, entry["status"])) or "any"} | {told} |')
    return HEAD + "\n".join(rows) + "\n"


def main() -> int:
    """Write both, or with --check return 1 where one is not as the code declares."""
    found = declared()
    wanted = {CODES: as_json(found), PAGE: as_page(found)}
    if "--check" in sys.argv[1:]:
        return int(any(not path.exists() or path.read_text(encoding="utf-8") != text for path, text in wanted.items()))
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
