"""A worker or a scheduler that lives and does nothing ends itself, so that whoever supervises it (compose) starts another.

Ticks come once a second, and long work renews its lease: a file that nobody touched for two minutes means that no message arrives or leaves any more,
as after a connection to the broker that broke without either side hearing of it. `quadgate up` sees the same sooner, by its canary and beat's file.
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
    """Watch the file of the settings from beside what this process does, if there is one."""
    if settings().alive_file:
        alive.touch()
        threading.Thread(target=_watch, name="deaf", daemon=True).start()


def _watch() -> None:
    path, silence = Path(settings().alive_file), alive.Silence()
    while (silent := silence.seconds(alive.touched(path))) <= SILENT_S:
        time.sleep(LOOK_S)
    log.error("nothing was done for %s s: this process ends, so that another one is started", round(silent))
    os.kill(os.getpid(), signal.SIGTERM)  # what its children are at may end
    time.sleep(ENDS_S)
    os.kill(os.getpid(), signal.SIGKILL)
