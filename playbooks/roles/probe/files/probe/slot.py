"""One place of the closed loop: where requests go, the connection, and the request that is on it."""

from __future__ import annotations

import errno
import os
import socket
from typing import Optional
from urllib.parse import urlsplit

from probe.account import Account


class Target:
    """Where requests go. `place` numbers the engine host that it is of; `on` is its name, where that is another host than the driver's."""

    def __init__(self, base_url: str, path: str = "/v1/completions", place: int = 0, on: Optional[str] = None) -> None:
        self.place, self.on = place, on
        parts = urlsplit(base_url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 80
        self.address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
        self.head = "POST %s%s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: " % (
            parts.path.rstrip("/"),
            path,
            self.host,
            self.port,
        )

    def request(self, body: bytes) -> bytes:
        """Return the whole request."""
        return b"%s%d\r\n\r\n%s" % (self.head.encode("ascii"), len(body), body)


class Slot:
    """One of the C places: a connection and the request that is on it."""

    __slots__ = ("account", "deadline_ns", "failures", "number", "ready_ns", "seen_ns", "sending", "sock", "target", "want_write")

    def __init__(self, number: int, target: Target) -> None:
        self.number, self.target = number, target
        self.sock: Optional[socket.socket] = None
        self.account: Optional[Account] = None
        self.sending: Optional[memoryview] = None
        self.want_write = False
        self.deadline_ns = 0
        self.ready_ns = 0
        self.seen_ns = 0  # when the last bytes of this request arrived, or when it was sent
        self.failures = 0


def quiet(sock: socket.socket) -> bool:
    """Tell whether an idle connection is still open and silent."""
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def code_text(code: int) -> str:
    """Return an errno in words."""
    return "%s: %s." % (errno.errorcode.get(code, str(code)), os.strerror(code))


def progress(account: Account) -> str:
    """Return how far an answer had come."""
    if account.first_byte_ns is None:
        return "before any answer"
    return "after %d chunks of text" % len(account.text_ns)
