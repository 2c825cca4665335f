"""YAML is read as a person wrote it, and no file can do anything to its reader: it ends in data or in a sentence with line and column."""

import contextlib
import json
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gates.plan import DEFAULT_PLAN, InvalidPlan, load_plan, parse_plan
from gates.schema import to_decimal
from gates.strict_yaml import LARGEST, BadYaml, read_yaml

LAUGH = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGES = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{','.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 12))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: !!python/object/apply:os.system [id]", "tag"),
        ("a: !!int abc", "tag"),
        ("a: !!bool abc", "tag"),
        ("a: !!set {b}", "tag"),
        ("a: !!binary 'é'", "tag"),
        ("a: !own 1", "tag"),
        (LAUGH, "unfolds"),
        (MERGES, "unfolds"),
        ("a: [" + "x," * 150_000 + "]", "unfolds"),
        ("[" * 5000 + "]" * 5000, "nested deeper"),
        ("a: " + "{a: " * 3000 + "1" + "}" * 3000, "nested deeper"),
        ("&a [*a]", "alias"),
        ("a: &a {b: *a}", "alias"),
        ("? &a [*a]\n: 1", "alias"),
        ("? [a]\n: 1", "a key must be a word"),
        ("~: 1", "a key must be a word"),
        ("a: 1\na: 2", "stands twice"),
        ("1: 1\n'1': 2", "stands twice"),
        ('a: "\\uD800"', "no text"),
        ('a: "\\0"', "no text"),
        ("a: 1\n---\nb: 2", "document"),
        ("a: [", "line"),
        ("#" * (LARGEST + 1), "characters"),
    ],
)
def test_a_hostile_file_ends_in_a_sentence(text, says):
    with pytest.raises(BadYaml) as caught:
        read_yaml(text)
    assert says in caught.value.text.en
    assert caught.value.text.zh


@pytest.mark.parametrize(
    ("text", "en", "zh"),
    [
        (
            "a: b: c",
            "line 1, column 5: not readable as YAML: a `key: value` cannot begin here.",
            "第 1 行第 5 列：无法按 YAML 解析：此处不能出现“键: 值”。",
        ),
        ("a: 1\n b: 2", "line 2, column 3", "此处不能出现“键: 值”"),
        ("- a\nb: 1", "the indentation does not go on as it began", "缩进与前文不一致"),
        ("a:\n\t- 1", "a tab indents nothing", "制表符不能用于缩进"),
        ("a: [1, 2", "the closing `]` is missing", "缺少“,”或右方括号“]”"),
        ("a: {b: 1", "the closing `}` is missing", "缺少“,”或右花括号“}”"),
        ("a: 'x", "the closing quote is missing", "缺少右引号"),
        ("a: @x", "no value can begin with '@'", "值不能以 '@' 开头"),
        ('a: "\\q"', "'q' cannot stand behind a backslash", "反斜杠后不能是 'q'"),
        ("a: *b", "the alias 'b' names nothing", "别名 'b' 未定义"),
        ("abc\nd: 1", "a `key: value` cannot begin here", "此处不能出现"),
        ("a: 1\nbcd\ne: 2", "a key without its `:`", "缺少冒号"),
        ("a: 1\n---\nb: 2", "another begins here", "此处开始了另一个"),
        ("a: {<<: 1}", "only a map can be merged", "只能合并映射"),
        ("a: \x01", "a control character", "控制字符"),
        ("a: 1\na: 2", "the key 'a' stands twice", "键 'a' 重复"),
    ],
)
def test_what_is_no_yaml_is_said_in_the_words_of_either_reader(text, en, zh):
    with pytest.raises(BadYaml) as caught:
        read_yaml(text)
    said = caught.value.text
    assert en in said.en
    assert zh in said.zh
    assert not re.search(r"[a-z]{3,} [a-z]{2,}", said.zh), said.zh


@pytest.mark.parametrize("written", ["010", "0x1F", "3:04:05", "2026-12-01", ".inf", ".nan", "1.0e+999999999", "1.0e-999999999", "1" * 5000])
def test_what_is_no_plain_number_stays_as_it_was_written(written):
    assert read_yaml(f"a: {written}") == {"a": written}


@pytest.mark.parametrize(
    ("written", "value"), [("0.1", Decimal("0.1")), ("1_000", 1000), ("-3", -3), ("1.5e+3", Decimal(1500)), ("yes", True), ("", None)]
)
def test_plain_values_are_exact(written, value):
    assert read_yaml(f"a: {written}") == {"a": value}


def test_keys_are_text_and_sharing_by_alias_and_merge_is_allowed():
    assert read_yaml("a: &a {8: 1}\nb: *a\nc: {<<: *a, 16: 2}") == {"a": {"8": 1}, "b": {"8": 1}, "c": {"8": 1, "16": 2}}


@given(st.text(max_size=200))
def test_any_text_gives_data_or_a_sentence(text):
    with contextlib.suppress(BadYaml):
        read_yaml(text)


@pytest.mark.parametrize(
    "value", ["1e999999999", "1e-999999999", "9" * 5000, 10**400, Decimal("1e999999999"), "٠.٠٥", "NaN", "sNaN", "Infinity", "1_0", " 1", ""]
)
def test_a_number_beyond_reason_is_refused_by_its_field_at_once(value):
    assert to_decimal(value) is None or isinstance(value, int)
    for path in (("g2", "repeatability_cv_max"), ("g2", "runs"), ("g4", "duration"), ("rig", "time_scale")):
        with pytest.raises(InvalidPlan) as caught:
            parse_plan({path[0]: {path[1]: value}})
        assert ".".join(path) in [p.path for p in caught.value.problems]


def problems_of(differences):
    try:
        plan = parse_plan(differences)
        assert load_plan(json.loads(plan.canonical())).hash == plan.hash, "what was sealed reads differently"
    except InvalidPlan as error:
        return [(p.path, p.message.en) for p in error.problems]
    return []


def test_every_field_of_the_plan_refuses_every_hostile_value_by_name_or_takes_it():
    def leaves(value, path=()):
        for key, item in value.items():
            yield (*path, key)
            if isinstance(item, dict):
                yield from leaves(item, (*path, key))

    for path in leaves(read_yaml(DEFAULT_PLAN.read_text(encoding="utf-8"))):
        for hostile in (
            None,
            "",
            -1,
            10**400,
            "1e999999999",
            "NaN",
            "1e-50",
            "1e-70",
            Decimal("1e-400"),
            1e-300,
            [],
            {},
            [[]],
            True,
            {"\x1b[2J": 1},
            "x" * 10_000,
            Decimal("1e-999999999"),
        ):
            differences = hostile
            for key in reversed(path):
                differences = {key: differences}
            said = problems_of(differences)
            assert all(message.startswith(path.split(".")[0]) or not path for path, message in said)
            assert all(len(message) < 1000 for _, message in said)
