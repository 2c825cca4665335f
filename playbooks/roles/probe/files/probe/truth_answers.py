"""The ways in which the server of known truth answers: plainly, and as engines and proxies really misbehave."""

from __future__ import annotations

import json
import re
import socket
from typing import Any, Callable, Dict, List, NamedTuple, Optional

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_LAST = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
JSON = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
_MODEL = re.compile(rb'"model"\s*:\s*"([^"\\]*)"')
_TOKENS = re.compile(rb'"max(?:_completion)?_tokens"\s*:\s*(\d+)')
_ID = re.compile(rb"\r\nx-request-id:\s*([^\r]+)", re.I)
GOLDEN = 0.6180339887498949


class Pace(NamedTuple):
    """When text comes: the first after ttft + spread x (a fixed number of [0, 1) of each request), then one chunk every gap. All in ns."""

    ttft_ns: int = 100_000_000
    spread_ns: int = 0
    gap_ns: int = 5_000_000


class Step(NamedTuple):
    """What is written when: ns after the request, bytes, or what makes them at that moment; `text` marks bytes that carry text."""

    after_ns: int
    data: Any
    text: bool = False


class Reply:
    """One answer under way and the truth about it."""

    def __init__(self, n: int, connection: socket.socket, head: bytes, body: bytes, received_ns: int, pace: Pace) -> None:
        self.n, self.connection, self.received_ns = n, connection, received_ns
        model, tokens, asked = _MODEL.search(body), _TOKENS.search(body), _ID.search(head)
        self.id = asked.group(1).decode("latin-1") if asked else None
        self.tokens = int(tokens.group(1)) if tokens else 8
        self.first_ns = pace.ttft_ns + int(pace.spread_ns * (n * GOLDEN % 1.0))
        self.gap_ns, self.word = pace.gap_ns, "q%06d " % n
        self.model = model.group(1).decode("latin-1") if model else "truth"
        self.prompt_tokens = body.count(b",", body.find(b"["), body.find(b"]")) + 1 if b'"prompt":[' in body else len(body) // 5
        self.sends_ns: List[int] = []
        self.wall_ahead_ns = 0
        behaviour = BEHAVIOURS.get(self.model.partition("/")[2], _plain)
        self.steps = iter(behaviour(self))

    def text(self, word: str = "w ", last: bool = False) -> bytes:
        """Return a completion chunk."""
        choice = {"index": 0, "text": word, "logprobs": None, "finish_reason": "length" if last else None}
        return _event({"id": "cmpl-%d" % self.n, "object": "text_completion", "created": 1, "model": self.model, "choices": [choice]})

    def usage(self, tokens: Optional[int] = None) -> Callable[[], bytes]:
        """Return what makes the chunk with usage and stamps, when all of them are known."""

        def make() -> bytes:
            count = self.tokens if tokens is None else tokens
            chunk: Dict[str, Any] = {"id": "cmpl-%d" % self.n, "object": "text_completion", "created": 1, "model": self.model, "choices": []}
            chunk["usage"] = {"prompt_tokens": self.prompt_tokens, "completion_tokens": count, "total_tokens": self.prompt_tokens + count}
            if self.sends_ns:
                chunk["server"] = {"recv_ns": self.received_ns, "first_ns": self.sends_ns[0], "send_ns": self.sends_ns[0]}
            return _event(chunk)

        return make

    def row(self) -> Dict[str, Any]:
        """Return the truth about this answer; `wall_ahead_ns` turns its moments into the wall clock's."""
        row: Dict[str, Any] = {"n": self.n, "id": self.id, "word": self.word.strip(), "recv_ns": self.received_ns}
        row.update(sends_ns=self.sends_ns, wall_ahead_ns=self.wall_ahead_ns, tokens=self.tokens)
        return row


def _event(obj: Any, name: str = "") -> bytes:
    event = (b"event: %s\n" % name.encode("ascii") if name else b"") + b"data: %s\n\n" % json.dumps(obj).encode("ascii")
    return b"%x\r\n%s\r\n" % (len(event), event)


def _texts(r: Reply, count: int, last: bool = True, per_chunk: int = 1) -> List[Step]:
    steps = []
    for n in range(count):
        word = (r.word if n == 0 else "w ") + "w " * (per_chunk - 1)
        steps.append(Step(r.first_ns + n * per_chunk * r.gap_ns, r.text(word, last and n == count - 1), True))
    return steps


def _end(r: Reply, tokens: Optional[int] = None) -> List[Step]:
    return [Step(0, r.usage(tokens)), Step(0, _LAST)]


def _plain(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, r.tokens), *_end(r)]


def _role(r: Reply) -> List[Step]:
    role = _event(
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
    )
    return [Step(0, _HEAD + role), *_texts(r, r.tokens), *_end(r)]


def _empty_chunks(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), Step(r.first_ns // 2, r.text("")), Step(r.first_ns // 2, r.text("")), *_texts(r, r.tokens), *_end(r)]


def _bundled(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, max(1, r.tokens // 4), per_chunk=4), *_end(r)]


def _http(r: Reply) -> List[Step]:
    body = b'{"error":{"message":"out of memory","code":500}}'
    return [Step(r.first_ns, JSON % (b"500 Internal Server Error", len(body), body))]


def _stream_error(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, 1, last=False), Step(0, _event({"error": {"message": "KV load failed", "code": 500}})), Step(0, _LAST)]


def _empty_stream(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), Step(r.first_ns, r.usage(0)), Step(0, _LAST)]


def _no_finish(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, r.tokens, last=False), *_end(r)]


def _short(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, max(1, r.tokens // 2)), *_end(r, max(1, r.tokens // 2))]


def _connection(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, 1, last=False), Step(0, None)]


def _stall(r: Reply) -> List[Step]:
    return [Step(0, _HEAD), *_texts(r, 1, last=False)]


BEHAVIOURS: Dict[str, Callable[[Reply], List[Step]]] = {
    "plain": _plain,
    "role": _role,
    "empty_chunks": _empty_chunks,
    "bundled": _bundled,
    "http": _http,
    "stream_error": _stream_error,
    "empty_stream": _empty_stream,
    "no_finish": _no_finish,
    "short": _short,
    "connection": _connection,
    "timeout": _stall,
}
