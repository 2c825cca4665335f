"""A server of known truth in a process of its own: it answers to order and says when it really did.

One thread, one epoll. Every text chunk is stamped right before its write and every request by the kernel as it arrives, so the truth is what
happened, not what was planned. The model's name says how to answer: `truth` plainly, `truth/KIND` as truth_answers.BEHAVIOURS lists.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import select
import socket
import struct
import sys
from typing import Any, Dict, List, Tuple

from probe.clock import mono_ns, wall_ns
from probe.receipt import ANCILLARY, Receipts
from probe.truth_answers import JSON, Pace, Reply, Step

_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.I)


class TruthServer:
    """Listens on a free port of 127.0.0.1 and answers until stdin ends (so the server dies with its parent)."""

    def __init__(self, pace: Pace, expect: int = 0, journal: str = "") -> None:
        self._pace, self._expect, self._journal = pace, expect, journal
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(1024)
        self._epoll = select.epoll()
        self._receipts = Receipts()
        self._connections: Dict[int, Tuple[socket.socket, bytearray, int]] = {}
        self._due: List[Tuple[int, int, Reply, Step]] = []
        self._replies: List[Reply] = []
        self._order = self._ended = 0

    def serve(self) -> None:
        """Answer until stdin ends; then write the journal, one JSON line an answer."""
        stdin = sys.stdin.fileno()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._epoll.register(stdin, select.EPOLLIN)
        _say({"port": self._listener.getsockname()[1], "true_ttft_ns": self._pace.ttft_ns})
        while True:
            wait = max(0.0, (self._due[0][0] - mono_ns()) / 1e9) if self._due else -1
            for fd, _ in self._epoll.poll(wait):
                if fd == self._listener.fileno():
                    self._accept()
                elif fd == stdin:
                    if not os.read(fd, 4096):
                        self._write_journal()
                        return
                else:
                    self._read(fd)
            while self._due and self._due[0][0] <= mono_ns():
                _, _, reply, step = heapq.heappop(self._due)
                self._write(reply, step)

    def _write_journal(self) -> None:
        if self._journal:
            with open(self._journal, "w", encoding="ascii") as f:
                f.writelines(json.dumps(reply.row()) + "\n" for reply in self._replies)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        self._receipts.prepare(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[connection.fileno()] = (connection, bytearray(), 0)
        self._epoll.register(connection.fileno(), select.EPOLLIN)

    def _read(self, fd: int) -> None:
        connection, buffer, received = self._connections[fd]
        try:
            data, ancillary, _, _ = connection.recvmsg(1 << 16, ANCILLARY)
        except OSError:
            data, ancillary = b"", []
        if not data:
            self._drop(connection)
            return
        now = self._receipts.of(ancillary, mono_ns(), 0)
        buffer += data
        while True:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                break
            received = received or now
            head = bytes(buffer[: end + 2])
            length = _LENGTH.search(head)
            size = end + 4 + (int(length.group(1)) if length else 0)
            if len(buffer) < size:
                break
            body = bytes(buffer[end + 4 : size])
            del buffer[:size]
            self._answer(connection, head, body, received)
            received = 0
        self._connections[fd] = (connection, buffer, received)

    def _answer(self, connection: socket.socket, head: bytes, body: bytes, received: int) -> None:
        if not head.startswith(b"POST") or b"/completions" not in head[:80]:
            listed = b'{"object":"list","data":[{"id":"truth","object":"model","created":1,"owned_by":"truth"}]}'
            self._send(connection, JSON % (b"200 OK", len(listed), listed))
            return
        reply = Reply(len(self._replies), connection, head, body, received, self._pace)
        self._replies.append(reply)
        if self._expect and len(self._replies) == 1:
            _say({"event": "first"})
        self._next(reply)

    def _next(self, reply: Reply) -> None:
        """Queue the next step of an answer; steps without a moment of their own are written at once."""
        for step in reply.steps:
            due = reply.received_ns + step.after_ns
            if step.after_ns and due > mono_ns():
                self._order += 1
                heapq.heappush(self._due, (due, self._order, reply, step))
                return
            self._put(reply, step)
        self._ended += 1
        if self._ended == self._expect:
            _say({"event": "last"})

    def _write(self, reply: Reply, step: Step) -> None:
        self._put(reply, step)
        self._next(reply)

    def _put(self, reply: Reply, step: Step) -> None:
        if step.data is None:  # hang up in the middle, hard
            reply.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._drop(reply.connection)
            return
        data = step.data() if callable(step.data) else step.data
        if step.text:
            if not reply.sends_ns:
                reply.wall_ahead_ns = wall_ns() - mono_ns()
            reply.sends_ns.append(mono_ns())  # nothing between the stamp and the write
        self._send(reply.connection, data)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        try:
            connection.sendall(data)
        except OSError:
            self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._connections.pop(connection.fileno(), None)
        connection.close()


def _say(row: Dict[str, Any]) -> None:
    print(json.dumps(row), flush=True)
