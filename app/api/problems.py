"""Errors of the API: `application/problem+json` (RFC 9457) for every one of them, in the reader's language."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from app.api.codes import type_of
from app.api.fields import field_error
from app.kit.db import is_away, said
from app.kit.errors import BadInput, QuadgateError, Unavailable
from app.kit.i18n import N_, language_tag, negotiate, translate
from app.web.security import SAFE_METHODS
from gates.text import Text

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("quadgate.api")

SENTENCES: dict[int, tuple[str, str]] = {
    401: ("unauthenticated", N_("A valid API token or session is needed: send the header Authorization: Bearer qg_...")),
    404: ("not_found", N_("There is nothing at {path}.")),
    405: ("method_not_allowed", N_("{path} does not take {method}.")),
    406: ("not_acceptable", N_("The answer cannot be given in the wanted form.")),
    422: ("bad_request", N_("The request does not fit, and nothing was done. Mend what errors names, field by field, and send it again.")),
    500: (
        "internal",
        N_(
            "Something failed inside the service. Look whether this request was carried out before you send it again. "
            "Tell the operator the request id."
        ),
    ),
}
OTHER = ("http", N_("The request could not be answered (HTTP {status})."))
UNREAD = N_("The database is away or busy, so this could not be read. Ask again in some seconds.")
UNKNOWN = N_(
    "The database went away or was busy for too long. Whether this request was carried out is not known: look, or send it again with the same "
    "Idempotency-Key, which does it once at most."
)
JSON_BODY = ("application/json",)
_JSON_TYPE = re.compile(r"application/(?:json|[^/ ]+\+json)")
SPOKEN = 3  # so many fields are told in `detail` itself, for whoever reads nothing else


class Unauthenticated(QuadgateError):  # noqa: N818 - the names are the words of the house
    """No token and no session, or one that is not valid."""

    status = 401

    def __init__(self) -> None:
        super().__init__(*SENTENCES[401])


class Precondition(QuadgateError):  # noqa: N818
    """If-Match is needed (428, RFC 6585)."""

    status = 428


class BadHeader(QuadgateError):  # noqa: N818
    """A header is missing or malformed."""

    status = 400


class UnsupportedMedia(QuadgateError):  # noqa: N818
    """The body came in a form that this call does not read; says in which one it is read."""

    status = 415

    def __init__(self, request: Request, accepted: Sequence[str]) -> None:
        self.accepted = accepted
        given = media_type(request)
        sentence = (
            N_("The body came as {given}, which is not read here. Send it as {accepted}, and say so in the header Content-Type.")
            if given
            else N_("The body came without a media type, so it was not read. Send it as {accepted}, and say so in the header Content-Type.")
        )
        listed = Text(en=" or ".join(accepted), zh=" 或 ".join(accepted))
        super().__init__("unsupported_media_type", sentence, given=given[:80], accepted=listed)


def media_type(request: Request) -> str:
    """Return the media type of a request's body without its parameters; "" for none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def locale_of(request: Request) -> str:
    """Return the locale of an answer: Accept-Language, else the caller's own, else the service's default."""
    actor = getattr(request.state, "actor", None)
    header = request.headers.get("accept-language")
    return negotiate(header, None if header else getattr(actor, "locale", None))


def problem(
    request: Request, status: int, code: str, detail: str, errors: Sequence[dict[str, str]] = (), headers: dict[str, str] | None = None
) -> Response:
    """Return a problem document. `type` leads to the list of codes of the API's own documentation."""
    try:
        title = HTTPStatus(status).phrase
    except ValueError:
        title = str(status)
    body: dict[str, Any] = {
        "type": type_of(code),
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.url.path,
        "code": code,
        "request_id": request.scope.get("state", {}).get("request_id", ""),
    }
    if errors:
        body["errors"] = list(errors)
    return JSONResponse(body, status, {"Content-Language": language_tag(locale_of(request)), **(headers or {})}, MEDIA_TYPE)


def of_error(request: Request, error: QuadgateError) -> Response:
    """Return the problem document of an error of the service."""
    locale = locale_of(request)
    errors = [{"pointer": e.pointer, "code": error.code, "message": e.text(locale)} for e in error.errors] if isinstance(error, BadInput) else []
    headers = {"WWW-Authenticate": 'Bearer realm="quadgate"'} if error.status == 401 else {}
    if isinstance(error, UnsupportedMedia):
        headers["Accept-Post"] = ", ".join(error.accepted)
    if isinstance(error, Unavailable):
        headers["Retry-After"] = str(error.retry_after_s)
    return problem(request, error.status, error.code, error.text(locale), errors, headers)


def unavailable(request: Request, error: SQLAlchemyError, unknown: str) -> Unavailable:
    """Return what is told of a database that is away or busy: `unknown` of a request that may have changed something. Raises any other error."""
    if not is_away(error):
        raise error
    log.warning("request %s met a database that is away or busy: %s", request.scope.get("state", {}).get("request_id", ""), said(error))
    return Unavailable("database_away", UNREAD if request.method in SAFE_METHODS else unknown)


def of_status(request: Request, status: int, headers: dict[str, str] | None = None) -> Response:
    """Return the problem document of a bare HTTP status."""
    code, sentence = SENTENCES.get(status, OTHER)
    detail = translate(sentence, locale_of(request), path=request.url.path, method=request.method, status=status)
    return problem(request, status, code, detail, headers=headers)


def of_fields(request: Request, found: Sequence[Any]) -> Response:
    """Return the problem document of a request that does not fit what the call takes, field by field."""
    if any(tuple(one["loc"]) == ("body",) and one["type"] != "missing" for one in found) and not _JSON_TYPE.fullmatch(media_type(request)):
        return of_error(request, UnsupportedMedia(request, JSON_BODY))
    locale = locale_of(request)
    fields = [field_error(one, locale) for one in found]
    code, sentence = SENTENCES[422]
    told = [": ".join(filter(None, (one["pointer"], one["message"]))) for one in fields[:SPOKEN]]
    return problem(request, 422, code, "\n".join([translate(sentence, locale), *told]), fields)


def install(api: FastAPI) -> None:
    """Give an application the handlers, so that no error leaves it in another form."""

    @api.exception_handler(QuadgateError)
    async def _ours(request: Request, error: QuadgateError) -> Response:
        return of_error(request, error)

    @api.exception_handler(HTTPException)
    async def _http(request: Request, error: HTTPException) -> Response:
        return of_status(request, error.status_code, dict(error.headers or {}))

    @api.exception_handler(RequestValidationError)
    async def _validation(request: Request, error: RequestValidationError) -> Response:
        return of_fields(request, error.errors())

    @api.exception_handler(SQLAlchemyError)
    async def _database(request: Request, error: SQLAlchemyError) -> Response:
        return of_error(request, unavailable(request, error, UNKNOWN))

    @api.exception_handler(Exception)
    async def _internal(request: Request, error: Exception) -> Response:
        log.error("request %s failed", request.scope.get("state", {}).get("request_id", ""), exc_info=error)
        return of_status(request, 500)
