"""A process in the midst of a move of an attempt: it has the lease, and can be killed or stopped for real."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from app.settings import ROOT

HANGS = """
import sys, time
from app.engine import advance
def hangs(ctx, decide):
    print("has the lease", flush=True)
    time.sleep(600)
advance._decide = hangs
advance.advance(sys.argv[1], None)
"""


@contextmanager
def holding(attempt_id: str) -> Iterator[subprocess.Popen[str]]:
    """Have a process that has the attempt's lease and does not give it back; settings go to it by the environment."""
    with subprocess.Popen([sys.executable, "-c", HANGS, attempt_id], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "has the lease"
            yield process
        finally:
            process.kill()
