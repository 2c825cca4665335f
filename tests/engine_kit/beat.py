"""The Celery application of a beat whose wall clock can be set back as a whole, and that gives itself up after two silent seconds."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import time_machine

from app.worker import deaf
from app.worker.app import app

deaf.SILENT_S, deaf.LOOK_S = 2.0, 0.1
BACK = Path(os.environ["BACK"])


def _set_back() -> None:
    while not BACK.exists():
        time.sleep(0.05)
    time_machine.travel(time.time() - 7200).start()
    BACK.write_text("set")


threading.Thread(target=_set_back, daemon=True).start()

__all__ = ["app"]
