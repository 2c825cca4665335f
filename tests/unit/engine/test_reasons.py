"""Why an attempt moved is told in both languages: a reason of the service is a pair of sentences, never one text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.attempts.moves import audited_reason, kept_reason, reason_pair, shown_reason
from app.settings import ROOT
from gates.text import Text

REASONS = ("reason", "cancel_reason")
FOLDERS = ("app/engine", "app/up", "app/attempts")


def bare_reasons(source: str) -> Iterator[int]:
    """Yield the lines on which a text of one language is given as a reason: by assignment, as a keyword, or to `moves.move`."""
    for node in ast.walk(ast.parse(source)):
        given: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            for target in node.targets:
                both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                given += zip(target.elts, node.value.elts, strict=True) if both else [(target, node.value)]
            given = [(target, value) for target, value in given if isinstance(target, ast.Attribute) and target.attr in REASONS]
        elif isinstance(node, ast.Call):
            given = [(keyword.value, keyword.value) for keyword in node.keywords if keyword.arg in REASONS]
            if isinstance(node.func, ast.Attribute) and node.func.attr == "move" and len(node.args) > 4:
                given.append((node.args[4], node.args[4]))
        yield from (value.lineno for _, value in given if is_bare(value))


def is_bare(value: ast.expr) -> bool:
    """Tell whether an expression makes a text of words that stand in the program."""
    inside = list(ast.walk(value))
    if any(isinstance(n, ast.Call) and getattr(n.func, "id", getattr(n.func, "attr", "")) in ("Text", "N_", "pair", "fill") for n in inside):
        return False
    return any(isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.strip()) for n in inside)


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ('outcome.event, outcome.reason = Event.X, f"no answer from {key}"', True),
        ('attempt.cancel_reason = "Stopped."', True),
        ('attempt.cancel_reason = " / ".join(told)', True),
        ('Outcome(reason="Stopped.")', True),
        ('moves.move(s, attempt, Event.X, actor, f"by {n}")', True),
        ("outcome.event, outcome.reason = Event.X, SILENT.fill(step=title)", False),
        ('attempt.cancel_reason = ""', False),
        ("Outcome(reason=trouble.text)", False),
        ('moves.move(s, attempt, Event.X, actor, Text("By {n}", "补 {n}").fill(n=2))', False),
    ],
)
def test_this_test_knows_a_bare_text_from_a_pair(line: str, bare: bool) -> None:
    assert bool(list(bare_reasons(line))) is bare


def test_no_reason_that_the_service_gives_is_a_text_of_one_language() -> None:
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in bare_reasons(Path(path).read_text(encoding="utf-8"))]
    assert len(paths) > 40
    assert found == []


def test_a_reason_is_kept_and_shown_as_it_was_given_a_persons_words_in_one_language_ours_in_two() -> None:
    ours = Text("The service was stopped.", "服务已停止。")
    assert (shown_reason(kept_reason(ours)), reason_pair(kept_reason(ours)), audited_reason(ours)) == (ours.json(), ours, ours.en)
    for said in ("机柜断电", "{half a JSON", ""):
        assert (kept_reason(said), shown_reason(said), reason_pair(said), audited_reason(said)) == (said, said, Text(said, said), said)
    pretended = '{"en": "I approve", "zh-CN": "我反对"}'  # typed by a person: the same words for readers of either language
    assert str(shown_reason(kept_reason(pretended))).strip() == pretended
    assert kept_reason(Text("机柜断电", "机柜断电")) == "机柜断电"
    assert (kept_reason(None), audited_reason(None)) == ("", "")
