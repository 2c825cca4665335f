"""However fast interrupts follow one another, what was started is stopped once, and whole."""

from __future__ import annotations

import subprocess
import sys

from app.settings import ROOT

ROUNDS = 20
PROGRAM = f"""
import os, signal, time
from app.demo.run import running

class Supervisor:
    def start(self, web): said.append("start")
    def stop(self, tell): time.sleep(0.002); said.append("stopped")

class Progress:
    def both(self, *_): pass

def hold(how): signal.pthread_sigmask(how, {{signal.SIGINT}})

for _ in range({ROUNDS}):
    said = []
    hold(signal.SIG_BLOCK)  # until the block is entered: before it, nothing is started that would have to be stopped
    if not (child := os.fork()):
        while True:  # until it is killed, as fast as a processor can
            os.kill(os.getppid(), signal.SIGINT)
    try:
        with running(Supervisor(), Progress(), web=False):
            hold(signal.SIG_UNBLOCK)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                pass
    except KeyboardInterrupt:
        said.append("interrupted")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(*said)
"""


def test_a_storm_of_interrupts_stops_once_and_whole() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ended.stdout.splitlines() == ["start stopped interrupted"] * ROUNDS, ended.stderr
    assert "Traceback" not in ended.stderr
