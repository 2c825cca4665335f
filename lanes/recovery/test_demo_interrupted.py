"""A demo that is interrupted, once or in haste, leaves nothing running, and the next one starts."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

from app.settings import ROOT
from tests.engine_kit import wait_for
from tests.processes import mentions


def test_two_interrupts_in_haste_stop_a_demo_in_the_middle_of_a_playbook_and_leave_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    demo = subprocess.Popen(
        [ROOT / ".venv/bin/quadgate", "demo", "--out", str(out), "--until", "G1"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        wait_for(lambda: any("ansible-playbook" in line for line in map(_words, mentions(out))) or demo.poll() is not None, 120)
        assert demo.poll() is None, demo.stdout and demo.stdout.read()
        demo.send_signal(signal.SIGINT)
        demo.send_signal(signal.SIGINT)
        text, _ = demo.communicate(timeout=120)
    finally:
        demo.kill()
        demo.wait()
    assert demo.returncode == 130, text
    assert b"Traceback" not in text
    assert mentions(out) == []


def test_a_terminal_that_goes_away_ends_a_demo_and_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    terminal, side = pty.openpty()
    demo = subprocess.Popen(
        [ROOT / ".venv/bin/quadgate", "demo", "--out", str(out), "--until", "G1"],
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(side)
    try:
        wait_for(lambda: any("ansible-playbook" in line for line in map(_words, mentions(out))) or demo.poll() is not None, 120)
        assert demo.poll() is None
        os.close(terminal)
        demo.wait(timeout=120)
    finally:
        demo.kill()
        demo.wait()
    assert demo.returncode not in (0, 1, 2, 3, 4)
    assert mentions(out) == []


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
