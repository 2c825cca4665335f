"""HTTP/1.1 answers and server-sent events, byte by byte. Pure: no socket and no clock, so that every odd server can be tested."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple


class BadAnswer(Exception):  # noqa: N818 - what came, not what failed
    """The server's bytes are not HTTP/1.1 as we speak it."""


class Event(NamedTuple):
    """One server-sent event."""

    name: str
    data: str


class Answer:
    """An incremental reader of one HTTP answer. `feed` returns body bytes; `done` says that the next answer may begin."""

    def __init__(self) -> None:
        self.status: Optional[int] = None
        self.headers: Dict[str, str] = {}
        self.done = False
        self.keep_alive = True
        self._buffer = b""
        self._chunked = False
        self._left: Optional[int] = None  # body bytes (or bytes of this chunk) still to come; None: until the end of the connection
        self._trailer = False

    def feed(self, data: bytes) -> bytes:
        """Take bytes from the socket, return decoded body bytes."""
        self._buffer += data
        if self.status is None and not self._head():
            return b""
        return self._chunks() if self._chunked else self._plain()

    def ended_well(self) -> bool:
        """Tell whether the end of the connection at this point is the proper end of the answer."""
        return self.done or (self.status is not None and not self._chunked and self._left is None)

    def _head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > 65536:
                    raise BadAnswer("the answer's header is longer than 64 KiB")
                return False
            lines = self._buffer[:end].decode("latin-1").split("\r\n")
            self._buffer = self._buffer[end + 4 :]
            part = lines[0].split(" ", 2)
            if len(part) < 2 or not part[0].startswith("HTTP/1.") or not part[1].isdigit():
                raise BadAnswer("the answer begins with %r, not with an HTTP/1.1 status" % lines[0][:80])
            if part[1].startswith("1"):
                continue  # 100 Continue and its kind
            break
        self.headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        connection = self.headers.get("connection", "").lower()
        self.keep_alive = "close" not in connection and (part[0] != "HTTP/1.0" or "keep-alive" in connection)
        self._chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length")
        if self._chunked:
            self._left = 0
        elif length is not None and length.isdigit():
            self._left = int(length)
        else:
            self.keep_alive = False
        self.status = int(part[1])
        return True

    def _plain(self) -> bytes:
        out, self._buffer = self._buffer, b""
        if self._left is not None:
            out = out[: self._left]
            self._left -= len(out)
            self.done = self._left == 0
        return out

    def _chunks(self) -> bytes:
        out: List[bytes] = []
        while not self.done:
            if self._left:
                piece = self._buffer[: self._left]
                if not piece:
                    break
                out.append(piece)
                self._buffer = self._buffer[len(piece) :]
                self._left -= len(piece)
                if self._left == 0:
                    self._left = None  # the line end after the chunk
                continue
            line, found, rest = self._buffer.partition(b"\r\n")
            if not found:
                break
            self._buffer = rest
            self._size_line(line)
        return b"".join(out)

    def _size_line(self, line: bytes) -> None:
        if self._trailer:
            self.done = not line
            return
        if self._left is None:
            if line:
                raise BadAnswer("a chunk is longer than it said")
            self._left = 0
            return
        try:
            self._left = int(line.split(b";")[0].strip(), 16)
        except ValueError:
            raise BadAnswer("a chunk begins with %r, not with its size" % line[:40]) from None
        self._trailer = self._left == 0


class Events:
    """An incremental reader of server-sent events."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> List[Event]:
        """Take body bytes, return the events that are complete."""
        if not data:
            return []
        self._buffer += data
        if b"\r" in self._buffer:
            keep = b"\r" if self._buffer.endswith(b"\r") else b""
            self._buffer = self._buffer[: len(self._buffer) - len(keep)].replace(b"\r\n", b"\n") + keep
        if b"\n\n" not in self._buffer:
            return []
        *blocks, self._buffer = self._buffer.split(b"\n\n")
        return [event for event in map(_event, blocks) if event is not None]


def _event(block: bytes) -> Optional[Event]:
    """Parse one block; comments and empty blocks are None."""
    if block.startswith(b"data: ") and b"\n" not in block:  # nearly all
        return Event("", block[6:].decode("utf-8", "replace"))
    name, data = "", []
    for line in block.decode("utf-8", "replace").split("\n"):
        key, value = _field(line)
        if key == "data":
            data.append(value)
        elif key == "event":
            name = value
    return Event(name, "\n".join(data)) if data or name else None


def _field(line: str) -> Tuple[str, str]:
    key, _, value = line.partition(":")
    return key, value[1:] if value.startswith(" ") else value
