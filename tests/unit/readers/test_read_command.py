"""`quadgate read TOOL FILE`: exit 0 when complete, 3 when anything is missing or unparsed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.commands.read import register
from gates.g1.people import form_params
from gates.plan import parse_plan
from gates.readers.recognise import read_or_recognise
from gates.readers.registry import READERS, read
from gates.readers.unpacking import FIELDS, RECEIVER
from tests.unit.rack.simulate import pack_files
from tests.unit.readers.test_fixtures import FIXTURES, NEVER_WHOLE


def run(*words: str):
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    return CliRunner().invoke(app, ["read", *words])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the SMART log of a drive of the rack."""
    path = tmp_path_factory.mktemp("read") / "nvme0.json"
    path.write_bytes(pack_files("array01", ["storage"], "survey")["nvme-smart-log.nvme0.out"])
    return path


def test_a_complete_file_is_shown_with_exact_values_and_exit_0(log):
    done = run("nvme-smart-log", str(log), "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["problems"] == []
    assert {"quantity": "health.temperature", "value": "308", "unit": "K", "labels": {}} in document["observations"]


def test_an_incomplete_file_ends_with_3_and_names_its_problems(log, tmp_path):
    cut = tmp_path / "cut.json"
    cut.write_bytes(log.read_bytes()[:100])
    done = run("nvme-smart-log", str(cut), "--json")
    assert done.exit_code == 3
    assert [p["code"] for p in json.loads(done.stdout)["problems"]] == ["not_json"]


GOOD = sorted(FIXTURES.glob("*/good-*"))
NO_TOOLS = [b"{}", b"[]", b'{"a": "b"}', b"a: 1\nb: 2\n", b"hello world\n", b"a,b\n1,2\n", b"# TYPE x counter\nx 1\n", b'{"a": 1}\n{"a": 2}\n']


@pytest.mark.parametrize("tool", READERS)
def test_no_file_of_another_tool_is_complete_and_nobody_is_sent_to_a_reader_that_cannot_read_it(tool):
    for data in (*(path.read_bytes() for path in GOOD if path.parent.name != tool), *NO_TOOLS):
        assert read(tool, data).problems, data[:80]


@pytest.mark.parametrize("path", [path for path in GOOD if path.parent.name not in NEVER_WHOLE], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_whoever_names_the_wrong_reader_is_told_the_right_one(path):
    wrong = "nvme-list" if path.parent.name != "nvme-list" else "fio"
    first = read_or_recognise(wrong, path.read_bytes()).problems[0]
    assert first.code == "other_tool"
    assert f"Nothing of the format of {wrong} was found." in first.message.en
    assert path.parent.name in first.message.en
    assert path.parent.name in first.message.zh


@pytest.mark.parametrize(
    ("tool", "other"), [("unpacking", "smartctl"), ("fio", "nvme-smart-log"), ("lspci", "vllm-bench"), ("inferencex", "vllm-bench")]
)
def test_the_command_ends_with_3_and_asks_for_the_reader_that_knows_the_file(tool, other):
    path = next(path for path in GOOD if path.parent.name == other)
    done = run(tool, str(path))
    assert done.exit_code == 3
    assert done.stderr.startswith("! other_tool: ")
    assert other in done.stderr.partition("did you mean that?")[0]
    assert "是否应使用该读取器" in run(tool, str(path), "--lang", "zh-CN").stderr


def test_a_file_that_no_reader_knows_is_said_to_hold_nothing_of_the_format(tmp_path):
    (tmp_path / "any").write_text('{"a": "b"}', encoding="utf-8")
    done = run("unpacking", str(tmp_path / "any"), "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["problems"][0]["code"] == "nothing_found"
    assert "Nothing of the format of unpacking was found" in json.loads(done.stdout)["problems"][0]["message"]


def test_the_fields_by_which_a_form_is_known_are_those_that_every_form_asks():
    asked = {field["name"] for field in form_params(parse_plan())["form"]}
    assert {*FIELDS} == {name for name in asked if not name.startswith(RECEIVER)}


def test_the_problems_can_be_read_in_chinese(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    done = run("fio", str(tmp_path / "empty"), "--lang", "zh-CN")
    assert done.exit_code == 3
    assert "文件为空" in done.stderr


def test_what_a_tool_says_never_steers_the_terminal_of_the_reader(tmp_path):
    (tmp_path / "hostile").write_text(json.dumps({"serial_number": "S\x1b]0;title\x07", "model_name": "M\x1b[2J\u202e"}), encoding="utf-8")
    done = run("smartctl", str(tmp_path / "hostile"))
    assert "S\\x1b]0;title\\x07" in done.stdout
    assert "M\\x1b[2J\\u202e" in done.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(done.output)


def test_a_file_that_is_not_there_is_not_a_complete_one(tmp_path):
    done = run("fio", str(tmp_path / "gone"), "--json")
    assert done.exit_code == 3
    assert "cannot be read" in json.loads(done.stdout)["problems"][0]["message"]


@pytest.mark.parametrize("words", [("no-such-tool", "x"), ("fio",), ()])
def test_a_usage_error_is_neither_0_nor_3(words):
    assert run(*words).exit_code not in (0, 1, 3, 4)


def test_the_list_names_every_reader_with_what_it_reads():
    done = run("--list", "--json")
    assert done.exit_code == 0
    tools = {row["tool"]: row["reads"] for row in json.loads(done.stdout)}
    assert {"fio", "nvme-smart-log", "nvme-list", "smartctl", "perftest", "amd-smi-static"} <= set(tools)
    assert all(reads["en"] and reads["zh-CN"] for reads in tools.values())
