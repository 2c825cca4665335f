"""Looking at the broker: does it answer, and how many hints wait in each queue."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

import redis

from app.settings import settings

PATIENCE_S = 1.5  # a broker that takes longer does not answer, as far as health is concerned


def client(url: str = "") -> redis.Redis:
    """Return a client of the broker's URL, with short time-outs and no retries. Celery's form of a socket's URL is understood."""
    url = url or settings().broker_url
    parts = urlsplit(url)
    patience = {"socket_timeout": PATIENCE_S, "socket_connect_timeout": PATIENCE_S}
    if parts.scheme.endswith("+socket"):
        return redis.Redis(unix_socket_path=parts.path, password=parts.password, **patience)  # type: ignore[arg-type]
    return redis.Redis.from_url(url, **patience)


def answers() -> bool:
    """Tell whether the broker answers and takes commands: a server that still loads its file answers PING with an error."""
    try:
        with client() as connection:
            return bool(connection.ping())
    except (redis.RedisError, OSError):
        return False


def depths(queues: Iterable[str]) -> dict[str, int]:
    """Return how many messages wait in each queue. Raises redis.RedisError or OSError when the broker does not answer."""
    names = list(queues)
    with client() as connection:
        pipe = connection.pipeline(transaction=False)
        for name in names:
            pipe.llen(name)
        return {name: int(depth) for name, depth in zip(names, pipe.execute(), strict=True)}
