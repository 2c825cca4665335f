"""A worker in a container that does nothing any more ends itself; one that works does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import ROOT

WORKER = """
import sys, time
import time_machine
from app.kit import alive
from app.worker import deaf
deaf.SILENT_S, deaf.LOOK_S = 1.0, 0.05
deaf.watch()
for look in range(30):
    time.sleep(0.1)
    if sys.argv[1] in ("busy", "busy, clock set forward"):
        alive.touch()
    if look == 5 and sys.argv[1] == "busy, clock set forward":
        time_machine.travel(time.time() + 4 * 3600).start()
    if look == 5 and sys.argv[1] == "deaf, clock set back":
        time_machine.travel(time.time() - 2 * 3600).start()
"""


@pytest.mark.parametrize(
    ("how", "ended"), [("busy", 0), ("deaf", -signal.SIGTERM), ("busy, clock set forward", 0), ("deaf, clock set back", -signal.SIGTERM)]
)
def test_a_worker_that_nobody_reaches_ends_itself(tmp_path: Path, how: str, ended: int) -> None:
    environment = {**os.environ, "QUADGATE_ALIVE_FILE": str(tmp_path / "alive"), "QUADGATE_STATE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WORKER, how], cwd=ROOT, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == ended, done.stderr
    assert (b"this process ends" in done.stderr) is how.startswith("deaf")
