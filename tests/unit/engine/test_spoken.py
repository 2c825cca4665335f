"""What a target says in both languages reaches each reader in his own, and what it says in one reaches both as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.engine import reconcile
from app.engine.capture import Capture
from app.engine.redact import Redactor
from app.engine.spoken import said, spoken, why_of
from app.engine.wiping import _why
from gates.text import Text
from tests.unit.hardware.kit import filters

PAIR = json.dumps({"en": "findmnt is not installed.", "zh-CN": "未安装 findmnt。"}, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "{", "{}", "[1]", '{"en": "x"}', '{"en": "", "zh-CN": "y"}', '{"en": 1, "zh-CN": "y"}', '{"en": "x", "zh-CN": "y", "z": 1}'],
)
def test_only_a_pair_is_a_pair(text: str) -> None:
    assert spoken(text) is None


def captured(tmp_path: Path, res: dict[str, object]) -> dict[str, object]:
    capture = Capture(tmp_path / "events", Redactor([]))
    capture.event({"uuid": "u", "event": "runner_on_failed", "event_data": {"host": "gpu01", "task": "volume : Make", "res": res}})
    return capture.failures[0]


def test_a_refusal_of_the_kit_becomes_a_problem_in_the_readers_language(tmp_path: Path) -> None:
    failure = captured(tmp_path, {"msg": "non-zero return code", "stderr": PAIR, "rc": 1})
    assert failure["message"] == "findmnt is not installed."
    result = {"stats": {"failures": {"gpu01": 1}}, "failures": [failure], "rc": 2, "status": "failed"}
    told = reconcile.troubles(result, ["gpu01"], playbook="deploy.yml", addresses={})[0].text
    assert "findmnt is not installed" in told.en
    assert "未安装 findmnt" in told.zh
    assert "installed" not in told.zh


def test_what_was_said_in_one_language_is_told_to_both(tmp_path: Path) -> None:
    assert said(captured(tmp_path, {"msg": "disk full"})) == Text("disk full", "disk full")


def test_checks_that_are_wrong_are_said_in_both_languages() -> None:
    row = {"check": "mtu.eth0", "state": "wrong", "value": 1500, "wanted": 9000, "evidence": "ip -j link"}
    told = spoken(filters.checks_sentence({"wrong": [row, {**row, "state": "unknown"}]}, "fabric", "gpu01"))
    assert told is not None
    assert "mtu.eth0 is 1500 and should be 9000" in told.en
    assert "mtu.eth0 为 1500，应为 9000" in told.zh


def test_why_a_drive_is_not_wiped_keeps_both_languages() -> None:
    told = _why("failed", {"why": "it is gone", "why_zh": "已不可见"}, {}, "")
    assert why_of(told) == Text("it is gone", "已不可见")
    assert why_of({"why": "as it was"}) == "as it was"
