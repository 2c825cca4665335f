"""The nudge of a playbook's host: one message, made beforehand by the engine, put into its queue without the weight of a message library.

A host lives for the seconds of one playbook, and importing Celery takes half a second of its CPU. Standard library only. A nudge is a hint:
whoever sends it may fail, and the tick finds the result all the same.
"""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TIMEOUT_S = 2.0


class NotPlain(Exception):  # noqa: N818 - a way that is not open, no error
    """The broker cannot be spoken to by plain words (TLS, another kind)."""


def push(broker_url: str, queue: str, message: dict[str, Any]) -> None:
    """Put a message (as `hints.sealed` makes it) into a queue. Raises NotPlain, or OSError where the broker does not take it."""
    url = urlsplit(broker_url)
    if url.scheme == "redis+socket":
        database = (parse_qs(url.query).get("virtual_host") or ["0"])[0]
        wire = socket.socket(socket.AF_UNIX)
        address: Any = url.path
    elif url.scheme == "redis" and url.hostname:
        database = url.path.strip("/") or "0"
        wire = socket.socket(socket.AF_INET6 if ":" in url.hostname else socket.AF_INET)
        address = (url.hostname, url.port or 6379)
    else:
        raise NotPlain(url.scheme)
    commands = [["SELECT", database], ["LPUSH", queue, json.dumps(message)]]
    if url.password:
        user = [unquote(url.username)] if url.username else []
        commands.insert(0, ["AUTH", *user, unquote(url.password)])
    with wire:
        wire.settimeout(TIMEOUT_S)
        wire.connect(address)
        wire.sendall(b"".join(_command(words) for words in commands))
        with wire.makefile("rb") as lines:
            for words in commands:
                answer = lines.readline()
                if not answer.startswith((b"+", b":")):
                    raise OSError(f"the broker refused {words[0]}")


def _command(words: list[str]) -> bytes:
    parts = [word.encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
