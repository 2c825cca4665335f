"""A worker that lives and does nothing ends itself, so that whoever supervises it (compose) starts another.

Ticks come once a second, and long work renews its lease: a file that nobody touched for two minutes means that no message arrives any more, as
after a connection to the broker that broke without either side hearing of it. `quadgate up` sees the same by its canary.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from pathlib import Path

from app.kit import alive
from app.settings import settings

log = logging.getLogger("quadgate.worker")
SILENT_S, LOOK_S, ENDS_S = 120.0, 5.0, 30.0


def watch() -> None:
    """Watch the file of the settings from beside the worker, if there is one."""
    if settings().alive_file:
        alive.touch()
        threading.Thread(target=_watch, name="deaf", daemon=True).start()


def _watch() -> None:
    path, began = Path(settings().alive_file), time.monotonic()
    while True:
        time.sleep(LOOK_S)
        try:
            age = time.time() - path.stat().st_mtime
        except OSError:
            age = time.monotonic() - began
        if age > SILENT_S:
            break
    log.error("nothing was done for %s s: this worker ends, so that another one is started", round(age))
    os.kill(os.getpid(), signal.SIGTERM)  # what its children are at may end
    time.sleep(ENDS_S)
    os.kill(os.getpid(), signal.SIGKILL)
