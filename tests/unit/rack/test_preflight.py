"""Which Python of a target is taken, and what is said when none will do."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.unit.rack.simulate import ROLES, load

SCRIPT = (ROLES / "preflight/files/pythons.sh").read_text()
plugin = load(ROLES / "preflight/filter_plugins/preflight.py")
MINIMUM = [3, 8]


def listed(bin_dir: Path, wanted: str = "") -> str:
    """Run the script with only this folder (and the shell's own tools) on PATH."""
    done = subprocess.run(["/bin/sh", "-c", f"WANTED={wanted!r}\n{SCRIPT}"], env={"PATH": str(bin_dir)}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fake_python(folder: Path, name: str, major: int, minor: int) -> Path:
    """Put a program there that answers as a Python of that version would."""
    path = folder / name
    newer = 0 if (major, minor) >= (3, 8) else 1
    path.write_text(f'#!/bin/sh\ncase "$4" in /*) p=$4;; *) p={path};; esac\necho "python {major} {minor} $p"\nexit {newer}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_asked_interpreter_is_taken_when_it_is_new_enough(tmp_path):
    asked = fake_python(tmp_path, "my-python", 3, 11)
    fake_python(tmp_path, "python3.12", 3, 12)
    assert plugin.choice(listed(tmp_path, str(asked)), MINIMUM) == str(asked)


def test_an_asked_interpreter_that_is_too_old_gives_way_to_a_newer_one(tmp_path):
    asked = fake_python(tmp_path, "python3", 3, 6)
    newer = fake_python(tmp_path, "python3.9", 3, 9)
    assert plugin.choice(listed(tmp_path, str(asked)), MINIMUM) == str(newer)


def test_the_real_interpreter_of_this_machine_is_found():
    text = subprocess.run(["/bin/sh", "-c", f"WANTED=\n{SCRIPT}"], env=dict(os.environ), capture_output=True, text=True, timeout=30).stdout
    assert Path(plugin.choice(text, MINIMUM)).exists()


def test_with_only_an_old_python_nothing_is_chosen_and_the_sentence_names_it_and_a_package(tmp_path):
    fake_python(tmp_path, "python3", 3, 6)
    text = listed(tmp_path)
    assert plugin.choice(text, MINIMUM) == ""
    advice = plugin.advice(text, MINIMUM)
    assert "Python 3.8 or newer is needed" in advice
    assert "3.6 at" in advice
    assert "Install the package" in advice


@pytest.mark.parametrize("text", ["", "garbage\n", "python 3 x /usr/bin/python3\n", "python 3 12\n", "python 3 12 relative\n"])
def test_a_listing_that_says_nothing_chooses_nothing(text):
    assert plugin.choice(text, MINIMUM) == ""
    assert "found: none" in plugin.advice(text, MINIMUM)


def test_release_8_is_told_its_own_package():
    assert "python39" in plugin.advice("python 3 6 /usr/libexec/platform-python\nos rhel 8.8\n", MINIMUM)
