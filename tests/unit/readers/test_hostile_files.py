"""Every reader of the registry against hostile files, made from its own outputs: named problems, never an exception, in bounded time."""

from __future__ import annotations

import itertools
import json
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gates.canonical import writable
from gates.model import Reading
from gates.readers import registry
from gates.readers.registry import READERS, read
from tests.unit.readers.seeds import seeds

SEEDS = seeds()
DEEP = 200_000
HOSTILE_VALUES = [
    *("null", "true", '"N/A"', '""', "NaN", "-Infinity", "1e999", "-1", "1e-999", "9" * 5000, "0." + "3" * 5000, "18446744073709551615"),
    *("1e99999999999999999999", "0e999999", "0e-999999"),
    *('{"a": 1, "a": 2}', "[[[[]]]]", "{}", "[]", '"\\ud800"', '"{x} {0} %s"', "[" * DEEP, '"' + "x" * 20_000 + '"', '"\\u0000\\u202e"'),
]
ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "gb18030", "cp037")


def answered(name: str, data: bytes) -> Reading:
    """Read, and hold the answer against what every reader owes: something said, exact finite values with units, sentences of bounded length."""
    reading = read(name, data)
    assert reading.observations or reading.problems
    for o in reading.observations:
        assert o.unit
        assert isinstance(o.value, str) or (isinstance(o.value, Decimal) and writable(o.value) and o.value >= 0)
        json.dumps(o.json(), ensure_ascii=False).encode()  # no half character gets through
    for p in reading.problems:
        assert p.code.isidentifier()
        assert 0 < len(p.message.en) < 700
        assert 0 < len(p.message.zh) < 700
        (p.message.en + p.message.zh).encode()
    return reading


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Return the path of every value in a JSON tree, lists by their first three items."""
    out = [path]
    if isinstance(value, dict):
        out += [p for key, inner in value.items() for p in places(inner, (*path, key))]
    if isinstance(value, list):
        out += [p for at, inner in enumerate(value[:3]) for p in places(inner, (*path, at))]
    return out


def with_value(tree: object, path: tuple[object, ...], text: str) -> bytes:
    """Return the JSON of a tree with the value at a path replaced by raw text."""
    mark = "@@here@@"
    copy = json.loads(json.dumps(tree))
    if not path:
        return text.encode()
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = mark
    return json.dumps(copy).replace(f'"{mark}"', text).encode()


def tree_of(data: bytes) -> object | None:
    try:
        return json.loads(data)
    except ValueError:
        return None


TREES = {name: trees for name, found in SEEDS.items() if (trees := [t for t in map(tree_of, found[:6]) if isinstance(t, dict | list)])}
names = st.sampled_from(sorted(READERS))


def test_every_reader_of_the_registry_has_an_output_to_be_fuzzed_with() -> None:
    assert sorted(name for name in READERS if not SEEDS[name]) == []


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(TREES)), st.data())
def test_any_field_with_any_hostile_value_is_answered(name: str, data: st.DataObject) -> None:
    tree = data.draw(st.sampled_from(TREES[name]))
    path = data.draw(st.sampled_from(places(tree)))
    answered(name, with_value(tree, path, data.draw(st.sampled_from(HOSTILE_VALUES))))


@settings(max_examples=200, deadline=None)
@given(names, st.data())
def test_any_output_cut_joined_and_changed_is_answered(name: str, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(SEEDS[name]))
    other = data.draw(st.sampled_from(SEEDS[data.draw(names)] or [b"x"]))
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    answered(name, cut)
    answered(name, cut + other)
    answered(name, whole + whole)
    at = data.draw(st.integers(0, len(whole)))
    answered(name, whole[:at] + data.draw(st.binary(max_size=6)) + whole[at:])


@pytest.mark.parametrize("name", sorted(READERS))
def test_two_lines_that_ran_together_are_answered(name: str) -> None:
    lines = SEEDS[name][0].split(b"\n")
    kinds = list({re.sub(rb"\d+", b"0", line): n for n, line in enumerate(lines)}.values())[:10]
    for first, second in itertools.permutations(kinds, 2):
        others = [line for n, line in enumerate(lines) if n not in (first, second)]
        for begun in {lines[first], b"".join(lines[first].partition(b":")[:2])}:  # with its end, or cut behind the name
            answered(name, b"\n".join([begun + lines[second], *others]))


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_foreign_encoding_is_answered(name: str) -> None:
    for whole in SEEDS[name][:2]:
        text = whole.decode("utf-8", "replace")
        for encoding in ENCODINGS:
            answered(name, text.encode(encoding, "replace"))
        answered(name, b"\x00" * 1000)
        answered(name, whole.replace(b'"', b"\xff"))
        answered(name, whole.replace(b"\n", b"\r"))


@pytest.mark.parametrize("name", sorted(READERS))
def test_nesting_without_end_and_words_without_end_are_answered(name: str) -> None:
    for data in (
        b"[" * DEEP,
        b'{"a":' * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b"9" * DEEP,
        b"-" * DEEP,
        b"a" * DEEP,
        b" : " * DEEP,
        b"\n" * DEEP,
        b"{x}" * DEEP,
    ):
        answered(name, data)


@pytest.mark.parametrize("name", sorted(TREES))
def test_a_key_that_stands_twice_with_two_values_is_never_complete(name: str) -> None:
    for tree in TREES[name][:1]:
        first = tree if isinstance(tree, dict) else next((row for row in tree if isinstance(row, dict)), None)
        if not first:
            continue
        key, value = next(iter(first.items()))
        doubled = "{" + json.dumps(key) + ': "another", ' + json.dumps({key: value, **first})[1:]
        text = doubled if isinstance(tree, dict) else f"[{doubled}]"
        assert "duplicate_key" in {p.code for p in answered(name, text.encode()).problems}


def test_a_file_larger_than_any_tools_output_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LARGEST", 1000)
    monkeypatch.setattr(registry, "MOST_PARTS", 100)
    for name in READERS:
        for data in (b"x" * 1001, b"[" * 101, b"1," * 101, b"\n" * 101):
            assert [p.code for p in read(name, data).problems] == ["too_large"]
