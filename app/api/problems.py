"""Errors of the API: `application/problem+json` (RFC 9457) for every one of them, in the reader's language."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from app.kit.db import is_away, said
from app.kit.errors import BadInput, QuadgateError, Unavailable
from app.kit.i18n import N_, language_tag, negotiate, translate
from app.web.security import SAFE_METHODS
from gates.system_words import of_words
from gates.text import Text

MEDIA_TYPE = "application/problem+json"
log = logging.getLogger("quadgate.api")

SENTENCES: dict[int, tuple[str, str]] = {
    401: ("unauthenticated", N_("A valid API token or session is needed: send the header Authorization: Bearer qg_...")),
    404: ("not_found", N_("There is nothing at {path}.")),
    405: ("method_not_allowed", N_("{path} does not take {method}.")),
    406: ("not_acceptable", N_("The answer cannot be given in the wanted form.")),
    422: ("bad_request", N_("The request does not fit: each entry of errors says where and why.")),
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
FIELD_WORDS: dict[str, str] = {
    "missing": N_("This field is missing."),
    "extra_forbidden": N_("There is no field of this name; check its spelling."),
    "json_invalid": N_("The body is not valid JSON: {reason}."),
    "string_type": N_("This must be text."),
    "bool_parsing": N_("This must be true or false."),
    "bool_type": N_("This must be true or false."),
    "int_parsing": N_("This must be a whole number."),
    "int_type": N_("This must be a whole number."),
    "greater_than_equal": N_("This is below the smallest value that is taken."),
    "less_than_equal": N_("This is above the largest value that is taken."),
    "literal_error": N_("This is none of the values that are taken: {expected}."),
    "enum": N_("This is none of the values that are taken: {expected}."),
    "string_too_long": N_("This text is too long."),
    "string_too_short": N_("This text is too short."),
    "string_pattern_mismatch": N_("This text does not have the expected form."),
}
FIELD_OTHER = N_("This value is not taken ({kind}).")


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
        "type": f"/api/v1/docs#problem-{code}",
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


def _pointer(location: Sequence[Any]) -> str:
    """Return where a field stands: a JSON pointer in the body, or `#/query/limit` for what is not in it."""
    parts = [str(part).replace("~", "~0").replace("/", "~1") for part in location]
    return "".join(f"/{part}" for part in (parts[1:] if parts[:1] == ["body"] else parts))


def _reason(said: Any) -> Text:
    """Return why JSON was refused: our own reason (app/api/strict.py) is in both languages already, Python's words are brought to them."""
    return said if isinstance(said, Text) else of_words(str(said))


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
        locale = locale_of(request)
        fields = []
        for found in error.errors():
            words = FIELD_WORDS.get(found["type"], FIELD_OTHER)
            more = found.get("ctx") or {}
            context = {"kind": found["type"], "expected": str(more.get("expected", "")), "reason": _reason(more.get("error", ""))}
            fields.append({"pointer": _pointer(found["loc"]), "code": found["type"], "message": translate(words, locale, **context)})
        code, sentence = SENTENCES[422]
        return problem(request, 422, code, translate(sentence, locale), fields)

    @api.exception_handler(SQLAlchemyError)
    async def _database(request: Request, error: SQLAlchemyError) -> Response:
        return of_error(request, unavailable(request, error, UNKNOWN))

    @api.exception_handler(Exception)
    async def _internal(request: Request, error: Exception) -> Response:
        log.error("request %s failed", request.scope.get("state", {}).get("request_id", ""), exc_info=error)
        return of_status(request, 500)
