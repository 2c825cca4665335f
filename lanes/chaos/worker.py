"""The Celery application of the lane, `celery -A lanes.chaos.worker`: the engine's own on a scaled clock."""

from __future__ import annotations

from pathlib import Path

from lanes.chaos import scaled

scaled.shorten()
scaled.bend_clock()
scaled.repeat_messages()

from app.engine import runner  # noqa: E402 - the intervals are set before whoever uses them is imported

runner.HOST_PROGRAM = Path(__file__).with_name("host.py")

from lanes.chaos import boundaries  # noqa: E402

boundaries.watch()

from app.worker.app import app  # noqa: E402

__all__ = ["app"]
