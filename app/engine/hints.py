"""The Celery application and the sending of hints. A message carries an id and a generation and nothing else; losing one costs a tick."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from celery import Celery

from app.kit import broker, traces
from app.settings import settings
from gates.model import StepKind

log = logging.getLogger("quadgate.engine")
STEPS, HEAVY, TICK = "steps@{node}", "heavy@{node}", "tick"
HEAVY_KINDS = frozenset({StepKind.JUDGE, StepKind.REPORT})  # what takes a processor for a while; everything else looks, decides and is gone
_SEALING = threading.Lock()


def celery_app(broker_url: str) -> Celery:
    """Return an application with the engine's settings: early acknowledgement, no results, no canvas, no prefetch, JSON only."""
    app = Celery("quadgate", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_acks_late=False,
        task_reject_on_worker_lost=False,
        task_ignore_result=True,
        result_backend=None,
        worker_disable_prefetch=True,
        worker_prefetch_multiplier=1,
        worker_max_tasks_per_child=2000,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        task_send_sent_event=False,
        task_soft_time_limit=240,
        task_time_limit=300,
        task_serializer="json",
        accept_content=["json"],
        task_create_missing_queues=True,
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=3,
        broker_transport_options={"visibility_timeout": 3600, "socket_keepalive": True, "health_check_interval": 25, "retry_on_timeout": True},
        timezone="UTC",
        enable_utc=True,
    )
    return app


@lru_cache(maxsize=2)
def _sender(broker_url: str) -> Celery:
    return celery_app(broker_url)


def send(broker_url: str, task: str, args: list[Any], *, queue: str, expires_s: float | None = None) -> None:
    """Publish one message, without retries. Raises what the broker raises, at once."""
    _knock(broker_url)
    headers = {traces.HEADER: traceparent} if (traceparent := traces.carried()) else None
    _sender(broker_url).send_task(task, args=args, queue=queue, expires=expires_s, ignore_result=True, retry=False, headers=headers)


def sealed(task: str, args: list[Any], *, queue: str) -> dict[str, Any]:
    """Return a message as it stands in a queue, for a process that sends it later without a message library (nudge.py)."""
    sender = _sender("memory://")
    with _SEALING, sender.connection_for_write() as connection:  # a queue in the memory of this process, of one caller at a time
        sender.send_task(task, args=args, queue=queue, ignore_result=True, retry=False, connection=connection)
        message: dict[str, Any] = connection.default_channel._get(queue)
    return message


def _knock(broker_url: str) -> None:
    """Raise OSError when nobody listens. The Redis client itself would try for 6 s, which is a fifth of a lease."""
    url = urlsplit(broker_url)
    if url.scheme.endswith("+socket"):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1)
            probe.connect(url.path)
    elif url.hostname:
        socket.create_connection((url.hostname, url.port or 6379), timeout=1).close()


def publish(task: str, args: list[Any], *, queue: str, expires_s: float | None = None) -> bool:
    """Publish a hint; a broker that is away is logged and never an error, since the tick sends due rows again."""
    try:
        send(settings().broker_url, task, args, queue=queue, expires_s=expires_s)
    except Exception as error:
        log.warning("hint %s%s was not sent (%s); the next tick repeats it", task, args, type(error).__name__)
        return False
    return True


def queue_of(node: str, kind: str | None) -> str:
    """Return the queue of a node in which a step of this kind waits for its turn."""
    return (HEAVY if kind in HEAVY_KINDS else STEPS).format(node=node)


def publish_advance(attempt_id: str, generation: int | None, node: str, kind: str | None = None) -> bool:
    """Hint that an attempt, which is at a step of this kind, can go on; only the queues of its node are used."""
    task = "advance_heavy" if kind in HEAVY_KINDS else "advance"
    return publish(task, [attempt_id, generation], queue=queue_of(node, kind), expires_s=300)


def waiting(queues: Iterable[str]) -> dict[str, int]:
    """Return how many hints wait in each queue; nothing where the broker does not answer."""
    names = list(queues)
    try:
        return broker.depths(names) if names else {}
    except Exception as error:
        log.warning("nobody can say what waits at the broker (%s)", type(error).__name__)
        return {}
