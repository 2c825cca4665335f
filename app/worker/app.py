"""The Celery application of the worker and of beat: `celery -A app.worker.app worker -Q tick,steps@NODE,heavy@NODE`."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from celery.exceptions import SecurityWarning
from celery.signals import after_task_publish, beat_init, celeryd_init, setup_logging, task_postrun, worker_process_init, worker_ready

from app.engine import nodes
from app.engine.hints import TICK, celery_app
from app.kit import alive, logs
from app.kit.db import engine_for
from app.settings import settings
from app.worker import deaf

log = logging.getLogger("quadgate.worker")
app = celery_app(settings().broker_url)
app.set_current()
app.conf.update(
    imports=["app.worker.tasks"],
    task_default_queue=TICK,
    beat_schedule={
        "tick": {"task": "tick", "schedule": settings().tick_seconds, "options": {"queue": TICK, "expires": max(5.0, 2 * settings().tick_seconds)}}
    },
    beat_max_loop_interval=1,
)


@setup_logging.connect  # type: ignore[untyped-decorator]
def _our_logs(**_: Any) -> None:
    """Keep Celery from setting up logs of its own."""
    logs.configure(settings().log_format)


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _our_lines(**_: Any) -> None:
    """Let the worker's first word and its last be lines of our log too: Celery writes both past it, to the terminal that it takes for granted."""
    from celery.apps import worker

    logs.configure(settings().log_format)
    warnings.filterwarnings("ignore", category=SecurityWarning)  # root with pickle runs what a message says; ours are JSON
    worker.safe_say = lambda said, *_: log.info("%s", said)


@worker_process_init.connect  # type: ignore[untyped-decorator]
def _own_database(**_: Any) -> None:
    """Give each child connections of its own: one inherited over a fork is shared with its siblings."""
    engine_for(settings().database_url).dispose(close=False)
    engine_for.cache_clear()


@worker_ready.connect  # type: ignore[untyped-decorator]
def _enrol_node(**_: Any) -> None:
    """Let the tick know that this node has a worker, and watch that it does anything."""
    nodes.beat(settings().node, began=True)
    deaf.watch()


@beat_init.connect  # type: ignore[untyped-decorator]
def _watch_scheduler(**_: Any) -> None:
    """Watch that this scheduler sends anything."""
    deaf.watch()


@task_postrun.connect  # type: ignore[untyped-decorator]
@after_task_publish.connect  # type: ignore[untyped-decorator]
def _done_something(**_: Any) -> None:
    """Say that a task of this worker came to its end, or that this scheduler's tick reached the broker."""
    alive.touch()
