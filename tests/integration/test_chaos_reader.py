"""The chaos lane's reader of an event stream: it goes on behind the last whole frame, and what it was not told, or twice, is found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from lanes.chaos import checks
from lanes.chaos.reader import Reader, compare


def frame(number: int, event: str, data: str) -> bytes:
    return f"id: e{number}.s0\nevent: {event}\ndata: {data}\n\n".encode()


class Torn(BaseHTTPRequestHandler):
    """Breaks off in the middle of the second frame; whoever comes again is told the rest."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        last = self.headers.get("Last-Event-ID", "")
        self.asked.append(last)
        self.send_response(200)
        self.end_headers()
        if not last:
            self.wfile.write(frame(1, "log", '[{"id":1}]') + frame(2, "log", '[{"id":2}]')[:-8])
        else:
            self.wfile.write(frame(2, "log", '[{"id":2}]') + frame(2, "bye", '{"ended":true}'))

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    Torn.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Torn) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_reader_goes_on_behind_the_last_whole_frame(port: int) -> None:
    reader = Reader(port, "-", "a")
    reader.start()
    assert reader.end(20)
    assert (reader.seen, reader.breaks, Torn.asked[:2]) == ([1, 2], 1, ["", "e1.s0"])


def test_an_event_that_was_not_told_or_twice_is_found() -> None:
    assert compare([1, 2, 3], [1, 2, 3]) == []
    assert [finding.kind for finding in compare([1, 3], [1, 2, 3])] == [checks.LOST]
    assert [finding.kind for finding in compare([1, 2, 2], [1, 2])] == [checks.DOUBLED]
