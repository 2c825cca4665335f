"""A Chinese sentence holds no English word but the field's own terms: names of tools, of their fields, and what they write word for word."""

from __future__ import annotations

import re

import pytest

from app.settings import ROOT
from gates.comparing import _WORK
from gates.judge import judge
from gates.readers.registry import read
from tests.unit.gates.chinese import english, written
from tests.unit.rack.simulate import bundle_of, demo_plan, evidence
from tests.unit.readers.test_fixtures import BAD, named

HEADINGS = re.compile(
    r"FEC parameters for |Settings for |# Port counters:|NIC statistics:|nvme device-self-test|show pfcwd stats"
)  # as tools print them
# What cannot hide each other, each group judged at once: every fault of an arrival that the simulated rack knows.
GROUPS = (
    ("narrow-link", "used-drive", "media-errors", "failed-self-test", "no-pfc", "link-partner-errors", "gpu-ecc", "gpu-firmware", "gpu-narrow"),
    ("port-errors", "hot-optic", "logged-error", "written-drive", "hot-drive", "power-losses", "kernel-faults", "slow-governor", "bare-node"),
    ("bit-errors",),
    ("missing-drive", "wrong-firmware", "interface-errors", "lost-log", "gpu-partition", "gpu-link-off", "cores-off"),
    ("swapped-drive", "port-down", "na-fields", "json-prefix", "gpu-weak"),
)


@pytest.mark.parametrize("faults", GROUPS, ids=lambda faults: faults[0])
def test_the_reasons_of_an_arrival_are_chinese(faults):
    plan = demo_plan()
    told = judge(bundle_of(evidence(dict.fromkeys(faults, 1)), plan))
    found = {c["id"]: (english(c[part]["zh-CN"]), c[part]["zh-CN"]) for c in told["checks"] for part in ("reason", "change") if c[part]}
    assert {check: row for check, row in found.items() if row[0]} == {}


@pytest.mark.parametrize("path", [p for p in BAD if p.parent.name in ("nvme-smart-log", "smartctl", "sysfs-link", "lspci", "perftest")], ids=named)
def test_the_problems_of_hardware_readers_are_chinese(path):
    for problem in read(path.parent.name, path.read_bytes()).problems:
        assert english(problem.message.zh) <= english(path.read_text(errors="replace")), problem.message.zh


def test_every_chinese_sentence_that_the_gates_can_say_is_chinese():
    """Also those that no test makes them say. What readers quote of commands and headings, and command lines in lists of readers, are left out."""
    found = {
        (str(path.relative_to(ROOT)), line, *english(text))
        for path in sorted((ROOT / "gates").rglob("*.py"))
        if path.name not in ("registry.py", "declared.py") or "readers" not in path.parts
        for line, text in written(path.read_text(encoding="utf-8"))
        if english(HEADINGS.sub("", text))
    }
    assert found == set()


def test_what_two_files_differ_in_is_named_in_both_languages():
    assert all(english(name.zh) == set() and name.en for name in _WORK.values())
