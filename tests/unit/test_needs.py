"""A lane that lacks something says so where it is read, and CI does not pass over it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import ROOT
from tests import needs

LANE = """
import pytest

@pytest.fixture
def server():
    raise AssertionError("a fixture was made before the need was asked for")

@pytest.mark.{name}
def test_a(server): ...

@pytest.mark.{name}
def test_b(server): ...

def test_c(): ...
"""
ABSENT = """
from dataclasses import replace
from tests import needs
needs.NEEDS = {name: replace(need, there=lambda: False) for name, need in needs.NEEDS.items()}
from tests.needs import *
"""


@pytest.fixture
def lane(tmp_path: Path):
    """Return a function that runs two tests with one need, which this machine lacks, and one without any."""

    def run(name: str, ci: str) -> tuple[int, str]:
        (tmp_path / "conftest.py").write_text(ABSENT)
        (tmp_path / "test_lane.py").write_text(LANE.format(name=name))
        command = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
        ended = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True, text=True, check=False
        )
        return ended.returncode, ended.stdout

    return run


def test_what_a_machine_lacks_is_said_once_in_a_sentence(lane) -> None:
    code, said = lane("sshd", "")
    assert code == 0, said
    assert f"NOT RUN: {needs.NEEDS['sshd'].lacking} (2 tests)\n" in said
    assert "1 passed, 2 skipped" in said


def test_under_ci_it_is_a_failure(lane) -> None:
    code, said = lane("postgres", "true")
    assert code == 1, said
    assert f"NOT RUN: {needs.NEEDS['postgres'].lacking}" in said
    assert "1 passed, 2 errors" in said


def test_what_no_package_brings_is_said_under_ci_too(lane) -> None:
    code, said = lane("old_python", "true")
    assert code == 0, said
    assert f"NOT RUN: {needs.NEEDS['old_python'].lacking} (2 tests)\n" in said
