"""The web application: pages, static files, REST API, health. `uvicorn app.main:app`."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from app.api.app import create_api
from app.api.problems import of_error, unavailable
from app.kit import logs
from app.kit.db import is_away
from app.kit.errors import Forbidden, NotFound, QuadgateError
from app.kit.i18n import N_
from app.settings import ROOT, settings
from app.web import health
from app.web.asgi import BODY_LIMIT, TOO_LARGE, BodyLimit, PlainAddress, Shell
from app.web.pages import account, approvals, attempts, board, door, downloads, judgements, packing, register, revise, whatif, wipes, words
from app.web.render import problem_page
from app.web.security import SignInNeeded, sign_in_url, stranger

log = logging.getLogger("quadgate.web")


UNKNOWN = N_(
    "The database went away or was busy for too long. Whether what you sent was carried out is not known: look at it before you send it again."
)


class Broken(QuadgateError):  # noqa: N818 - the names are the words of the house
    """Something failed that nobody foresaw."""

    status = 500


class Unfit(QuadgateError):  # noqa: N818
    """An HTTP status that the framework itself answers with."""

    def __init__(self, status: int) -> None:
        super().__init__("http", N_("The request could not be answered (HTTP {status})."), status=status)
        self.status = status  # type: ignore[misc]


class TooLarge(QuadgateError):  # noqa: N818
    """More came in one request than is taken."""

    status = 413


def too_large_page(request: Request, limit: int) -> Response:
    """Return the page of a body that is larger than `limit` MiB, in the reader's language."""
    return problem_page(request, TooLarge("too_large", TOO_LARGE, limit=limit))


def away_page(request: Request, error: SQLAlchemyError) -> Response:
    """Return the page of a database that is away or busy, which asks it for nothing. Raises any other error of the database."""
    told = unavailable(request, error, UNKNOWN)
    if not hasattr(request.state, "visitor"):
        request.state.visitor = stranger(request)
    response = problem_page(request, told)
    response.headers["Retry-After"] = str(told.retry_after_s)
    return response


@asynccontextmanager
async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Nothing is kept between requests; the database is opened by the first one."""
    if logging.getLogger("uvicorn").handlers:  # a server of its own, not a test within another program
        logs.configure(settings().log_format)
    yield


def create_app(body_limit: int = BODY_LIMIT) -> ASGIApp:
    """Return the whole application, which takes at most `body_limit` bytes in one request."""
    web = FastAPI(title="Quadgate", openapi_url=None, docs_url=None, redoc_url=None, lifespan=lifespan)
    web.mount("/api/v1", create_api())
    web.mount("/static", StaticFiles(directory=ROOT / "app" / "web" / "static"), name="static")
    for router in (
        health.router,
        door.router,
        board.router,
        downloads.router,
        attempts.router,
        judgements.router,
        approvals.router,
        register.router,
        revise.router,
        whatif.router,
        packing.router,
        wipes.router,
        account.router,
        words.router,
    ):
        web.include_router(router)
    _handle_errors(web)
    # outside of everything, so that even the answer to a crash carries the headers
    return Shell(PlainAddress(BodyLimit(web, body_limit, too_large_page)))


def token_refusal(request: Request) -> Forbidden | None:
    """Return why an API token opens no page, and what to do instead; None for a request without one."""
    if not request.headers.get("authorization"):
        return None
    if request.url.path.split("/")[1] == "sign-off":
        return Forbidden(
            "token_cannot_sign",
            N_(
                "An API token cannot sign: an approval is one person's own decision, so the person signs in with login and password and decides "
                "at {address}. What waits is also told by GET /api/v1/approvals."
            ),
            address=_address(request, "/sign-off"),
        )
    return Forbidden(
        "token_at_page",
        N_("An API token opens no page: the pages are for people, who sign in at {address} with login and password. For programs there is /api/v1."),
        address=_address(request, "/sign-in"),
    )


def _address(request: Request, path: str) -> str:
    return (settings().public_url.rstrip("/") or str(request.base_url).rstrip("/")) + path


def _refuse_token(request: Request, error: Forbidden) -> Response:
    """Answer a program in a program's form, and whoever asked for a page with one."""
    return problem_page(request, error) if "text/html" in request.headers.get("accept", "") else of_error(request, error)


def _handle_errors(web: FastAPI) -> None:
    """Every error of a page is a page: what failed, the code, the request id."""

    @web.exception_handler(SignInNeeded)
    def _sign_in(request: Request, _error: SignInNeeded) -> Response:
        if refusal := token_refusal(request):
            return _refuse_token(request, refusal)
        return RedirectResponse(sign_in_url(request), 303)

    @web.exception_handler(QuadgateError)
    def _ours(request: Request, error: QuadgateError) -> Response:
        return problem_page(request, error)

    @web.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> Response:
        refusal = token_refusal(request)
        if refusal is not None and refusal.code == "token_cannot_sign":  # whatever method or address below the inbox it tried
            return _refuse_token(request, refusal)
        if error.status_code == 404:
            return problem_page(request, NotFound("not_found", N_("There is nothing at {path}."), path=request.url.path))
        response = problem_page(request, Unfit(error.status_code))
        response.headers.update(dict(error.headers or {}))
        return response

    @web.exception_handler(RequestValidationError)
    def _validation(request: Request, _error: RequestValidationError) -> Response:
        return problem_page(request, Unfit(422))

    web.add_exception_handler(SQLAlchemyError, away_page)  # type: ignore[arg-type]

    @web.exception_handler(Exception)
    def _broken(request: Request, error: Exception) -> Response:
        if isinstance(error, SQLAlchemyError) and is_away(error):  # it failed the page of another error
            return away_page(request, error)
        log.error("request %s failed", request.scope.get("state", {}).get("request_id", ""), exc_info=error)
        sentence = N_(
            "Something failed inside the service. Look whether what you sent was carried out before you send it again. "
            "Tell the operator the request id."
        )
        return problem_page(request, Broken("internal", sentence))


app = create_app()
