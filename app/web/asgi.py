"""The shell around every answer, as plain ASGI: request id, security headers, a limit on what may be sent to us.

No `BaseHTTPMiddleware`: it buffers, and the live pages stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_plus

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.codes import type_of
from app.kit import logs, traces
from app.kit.db import new_id
from app.kit.i18n import N_, language_tag, negotiate, translate

BODY_LIMIT = 48 * 1024 * 1024  # photos and scans of a signed report; evidence comes from the targets, not through here
DROPPED = 2**30  # 40 photos of 20 MiB and more: read and thrown away, so that the page of the refusal is seen
TOO_LARGE = N_("What was sent is larger than {limit} MiB, the most that is taken in one request. Send fewer or smaller files.")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; script-src 'self'; style-src 'self'"
)
HEADERS: tuple[tuple[str, str], ...] = (
    ("Content-Security-Policy", CONTENT_POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Permissions-Policy", "camera=(), geolocation=(), microphone=()"),
)


class Shell:
    """Give each request an id (taken from `X-Request-Id` when it is well formed) and each answer the security headers."""

    def __init__(self, app: ASGIApp, headers: Iterable[tuple[str, str]] = HEADERS) -> None:
        self.app = app
        self.headers = tuple(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an answer that set one of the headers itself keeps its own."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = _header(scope, b"x-request-id")
        request_id = given if _REQUEST_ID.fullmatch(given) else new_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                span.say(status=message["status"])
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in self.headers:
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        with logs.about(request=request_id), _traced(scope, request_id) as span:
            await self.app(scope, receive, send_with_headers)
            span.call(f"{scope['method']} {_route(scope)}")


def _traced(scope: Scope, request_id: str) -> AbstractContextManager[traces.Span]:
    """Return the span of a request, or none for what is asked all the time and tells nothing."""
    untold = scope["path"].startswith("/static/") or scope["path"] in ("/healthz", "/readyz", "/metrics")
    where = "" if untold else None
    return traces.span("request", parent=_header(scope, traces.HEADER.encode()), endpoint=where, request=request_id, method=str(scope["method"]))


def _route(scope: Scope) -> str:
    """Return the pattern that a request matched, e.g. /attempts/{attempt_id}: an address itself may hold what is nobody's business."""
    path = getattr(scope.get("route"), "path", "")
    return f"{scope.get('root_path', '')}{path}" if path else "(no route)"


class BodyLimit:
    """Refuse a body that is larger than the limit, by its announced length or while it arrives.

    `page` makes the answer for who reads pages (a browser: Accept names text/html); others get a problem document.
    """

    def __init__(self, app: ASGIApp, limit: int = BODY_LIMIT, page: Callable[[Request, int], Response] | None = None) -> None:
        self.app = app
        self.limit = limit
        self.page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413 before the application reads on; count bytes where no length was announced."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = _header(scope, b"content-length")
        if announced.isdigit() and int(announced) > self.limit:
            await self._refuse(scope, receive, send, more=True)
            return
        seen = 0
        more = True  # whether the body goes on: who asks beyond its end waits for as long as the sender stays
        started = False

        async def counted() -> Message:
            nonlocal seen, more
            message = await receive()
            more = message.get("more_body", False)
            seen += len(message.get("body", b"")) if message["type"] == "http.request" else 0
            if seen > self.limit:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, counted, watched)
        except _TooLarge:
            if started:
                raise
            await self._refuse(scope, receive, send, more=more)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, more: bool) -> None:
        """Answer 413. A browser shows no answer before all it sends is taken, so for it the rest is read and dropped, up to DROPPED bytes."""
        if self.page is None or "text/html" not in _header(scope, b"accept") or scope["path"].startswith("/api/"):
            await answer(scope, send, 413, "too_large", TOO_LARGE, limit=self.limit // 2**20)
            return
        dropped = 0
        while more and dropped < DROPPED:
            message = await receive()
            dropped += len(message.get("body", b""))
            more = message.get("more_body", False)
        response = await run_in_threadpool(self.page, Request(scope), self.limit // 2**20)
        await response(scope, receive, send)


class PlainAddress:
    """Refuse an address with a control character (NUL above all: PostgreSQL takes none) before anything looks for what it names."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 400, or pass the request on."""
        if scope["type"] == "http" and _CONTROL.search(scope["path"] + unquote_plus(scope["query_string"].decode("latin-1"))):
            await answer(scope, send, 400, "no_text", N_("The address holds a character that is no text."))
            return
        await self.app(scope, receive, send)


async def answer(scope: Scope, send: Send, status: int, code: str, sentence: str, **params: Any) -> None:
    """Send a problem document from outside the applications: no handler of theirs can give this one."""
    locale = negotiate(_header(scope, b"accept-language"))
    body = json.dumps(
        {
            "type": type_of(code),
            "title": "Content Too Large" if status == 413 else HTTPStatus(status).phrase,  # RFC 9110; Python 3.11 has its older name
            "status": status,
            "code": code,
            "detail": translate(sentence, locale, **params),
            "request_id": scope.get("state", {}).get("request_id", ""),
        },
        ensure_ascii=False,
    ).encode()
    headers = [(b"content-type", b"application/problem+json"), (b"content-language", language_tag(locale).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


class _TooLarge(BaseException):
    """More came than is taken. Not an `Exception`, so that no handler on the way turns it into a 500."""


def _header(scope: Scope, name: bytes) -> str:
    """Return the first header of a name as text, or an empty text."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")
