"""The Celery application of the nodes of test_two_workers.py, `celery -A lanes.recovery.two_nodes`: a node counts as silent after 20 s, not 90."""

from __future__ import annotations

from app.engine import policy

policy.NODE_STALE_S = 20.0  # before whoever reads it is imported; a heartbeat comes every 5 s, and a second look is taken all the same

from app.worker.app import app  # noqa: E402

__all__ = ["app"]
