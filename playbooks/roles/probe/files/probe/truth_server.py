"""A server of known truth in a process of its own: it answers with text at set deadlines and says when it really did.

Deadlines are absolute and the last stretch is spun, so that the truth is exact to microseconds; a chain of sleeps would add a millisecond each.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time

from probe.clock import mono_ns

SPIN_NS = 300_000
GAP_NS = 5_000_000


def serve(true_ttft_ns: int = 100_000_000, tokens: int = 8) -> int:
    """Listen on a free port of 127.0.0.1, print it, and answer until stdin ends (so the server dies with its parent)."""
    sys.setswitchinterval(0.0005)
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    print(json.dumps({"port": listener.getsockname()[1], "true_ttft_ns": true_ttft_ns}), flush=True)
    threading.Thread(target=_accept, args=(listener, true_ttft_ns, tokens), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


def _accept(listener: socket.socket, ttft_ns: int, tokens: int) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer_all, args=(connection, ttft_ns, tokens), daemon=True).start()


def _answer_all(connection: socket.socket, ttft_ns: int, tokens: int) -> None:
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            data = connection.recv(1 << 18)
            if not data:
                return
            buffer += data
        received = mono_ns()
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        while len(buffer) < length:
            data = connection.recv(1 << 18)
            if not data:
                return
            buffer += data
        buffer = buffer[length:]
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent = 0
        for n in range(tokens):
            _wait_until(received + ttft_ns + n * GAP_NS)
            now = mono_ns()
            _chunk(connection, {"choices": [{"text": "t%d " % n, "finish_reason": "length" if n == tokens - 1 else None}]})
            sent = sent or now
        usage = {"prompt_tokens": 0, "completion_tokens": tokens}
        _chunk(connection, {"choices": [], "usage": usage, "server": {"recv_ns": received, "first_ns": sent, "send_ns": sent}})
        connection.sendall(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


def _chunk(connection: socket.socket, obj: object) -> None:
    event = b"data: %s\n\n" % json.dumps(obj).encode("ascii")
    connection.sendall(b"%x\r\n%s\r\n" % (len(event), event))


def _wait_until(deadline_ns: int) -> None:
    left = deadline_ns - mono_ns()
    if left > SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while mono_ns() < deadline_ns:
        pass
