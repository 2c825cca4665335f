"""HTTP/1.1 with keep-alive, as little of it as the endpoints need."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Dict, Optional, Tuple

from . import __version__, sglang
from .completions import Completion, RequestError
from .engine import Answer, Engine

LARGEST_BODY = 64 * 1024 * 1024
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 411: "Length Required", 413: "Content Too Large"}


class Server:
    """The endpoints of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._number = 0

    async def listen(self, host: str, port: int) -> asyncio.AbstractServer:
        """Open the port."""
        return await asyncio.start_server(self._connection, host, port, limit=1024 * 1024, backlog=512)

    @staticmethod
    def port_of(listener: asyncio.AbstractServer) -> int:
        """Return the port that was opened (the configuration may say 0: any)."""
        port: int = listener.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        return port

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, or does not speak HTTP
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; tell whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        recv_ns = time.monotonic_ns()
        arrived = asyncio.get_running_loop().time()
        method, path, headers = _parse(head)
        keep = headers.get("connection", "").lower() != "close"
        if "transfer-encoding" in headers:
            _whole(writer, 411, {"error": {"message": "send the body with Content-Length", "code": 411}})
            return False
        length = int(headers.get("content-length") or 0)
        if length > LARGEST_BODY:
            _whole(writer, 413, {"error": {"message": f"a body of {length} bytes is too large", "code": 413}})
            return False
        if headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(length) if length else b""
        if (method, path) == ("POST", "/v1/completions"):
            await self._complete(writer, body, arrived, recv_ns)
        else:
            self._small(writer, method, path)
        await writer.drain()
        return keep

    def _small(self, writer: asyncio.StreamWriter, method: str, path: str) -> None:
        config, version = self._engine.config, f"lab-{__version__}"
        like_sglang = config.dialect == "sglang"
        reset = "/flush_cache" if like_sglang else "/reset_prefix_cache"
        if method == "GET" and path == "/metrics":
            _send(writer, 200, self._engine.metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")
        elif (method, path) == ("POST", reset):
            done = self._engine.reset_prefix_cache()
            if like_sglang:
                _send(writer, 200 if done else 400, (sglang.FLUSHED if done else sglang.REFUSED).encode(), "text/plain; charset=utf-8")
            else:
                _whole(writer, 200, {"success": done})
        else:
            served = {"id": config.model, "object": "model", "max_model_len": config.max_model_len}
            pages: Dict[str, Any] = {"/health": {}, "/v1/models": {"object": "list", "data": [served]}}
            if like_sglang:
                pages["/server_info"] = sglang.server_info(config, version)
            else:
                pages.update({"/version": {"version": version}, "/config": config.public(), "/server_info": config.public()})
            if method == "GET" and path in pages:
                _whole(writer, 200, pages[path])
            else:
                known = path in pages or path in ("/metrics", reset, "/v1/completions")
                status = 405 if known else 404
                _whole(writer, status, {"error": {"message": f"{method} {path}: {REASONS[status].lower()}", "code": status}})

    async def _complete(self, writer: asyncio.StreamWriter, body: bytes, arrived: float, recv_ns: int) -> None:
        self._number += 1
        try:
            completion = Completion(body, self._number, self._engine.config, arrived, recv_ns)
        except RequestError as error:
            _whole(writer, error.status, {"error": {"message": str(error), "type": "BadRequestError", "code": error.status}})
            return
        del body
        stream = _Stream(writer)

        def begin(answer: Answer) -> Any:
            if completion.stream:
                stream.open()
            return completion.receiver(answer, stream.write)

        answer = await self._engine.run(completion.request, begin)
        if completion.stream:
            stream.write(completion.end(answer))
            stream.close()
        else:
            _whole(writer, 500 if answer.defect == "error_stream" else 200, completion.whole(answer))


class _Stream:
    """A response of server-sent events in HTTP chunks."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._head: Optional[bytes] = None

    def open(self) -> None:
        """Have the headers go out with the first event."""
        self._head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        )

    def write(self, data: bytes) -> bool:
        """Send events; False when nobody listens any more."""
        if self._writer.transport.is_closing():
            return False
        head, self._head = self._head or b"", None
        self._writer.write(b"%s%x\r\n%s\r\n" % (head, len(data), data))
        return True

    def close(self) -> None:
        """End the response."""
        self._writer.write(b"0\r\n\r\n")


def _parse(head: bytes) -> Tuple[str, str, Dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3:
        raise ConnectionError(f"not a request line: {lines[0][:80]!r}")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if not (headers.get("content-length") or "0").isdigit():
        raise ConnectionError("Content-Length is not a number")
    return parts[0], parts[1].split("?", 1)[0], headers


def _whole(writer: asyncio.StreamWriter, status: int, data: Any) -> None:
    _send(writer, status, json.dumps(data).encode(), "application/json")


def _send(writer: asyncio.StreamWriter, status: int, body: bytes, kind: str) -> None:
    head = f"HTTP/1.1 {status} {REASONS.get(status, 'Internal Server Error')}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
