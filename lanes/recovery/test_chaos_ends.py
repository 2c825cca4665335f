"""The chaos lane itself has one way down: whatever ends it, and from wherever it was started, no process, no mount and no folder is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.settings import ROOT
from lanes.chaos.ground import clear, mounts
from tests.engine_kit import wait_for
from tests.needs import NEEDS
from tests.processes import mentions

LANE = [sys.executable, "-m", "lanes.chaos", "--no-control", "--waves", "soaks"]
SHOWS = {"starting": "qg-chaos-*/s*/supervisor.lock", "at work": "qg-chaos-*/s*/lab/*/*/jobs/*/started"}
IN_THE_BACKGROUND = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder with a short name, since sockets lie in it."""
    made = Path(tempfile.mkdtemp(prefix="qc"))
    yield made
    clear(made)


@pytest.mark.parametrize(("sign", "when"), [(signal.SIGTERM, "starting"), (signal.SIGTERM, "at work"), (signal.SIGINT, "at work")])
def test_nothing_is_left_of_a_lane_that_is_ended(sign: signal.Signals, when: str, folder: Path) -> None:
    """INT comes to one that a shell put into the background, where it is ignored at first. A second signal must not break the first one's work."""
    argv = [sys.executable, "-c", IN_THE_BACKGROUND, *LANE] if sign is signal.SIGINT else LANE
    with (folder / "out").open("w") as out:
        lane = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "TMPDIR": str(folder)}, stdout=out, stderr=out, start_new_session=True)
        wait_for(lambda: list(folder.glob(SHOWS[when])), said=f"the lane is {when}")
        mounted = mounts(folder)
        lane.send_signal(sign)
        time.sleep(0.5)
        lane.send_signal(sign)
        assert lane.wait(120) in (1, -sign), (folder / "out").read_text()  # the second one may meet the interpreter's own end
    assert "The lane was interrupted." in (folder / "out").read_text()  # which is said when all is ended
    assert mounted or not NEEDS["mounts"].there()
    assert (mentions(folder), mounts(folder), list(folder.glob("qg-*"))) == ([], [], [])
