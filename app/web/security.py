"""Who is at the page, and whether a form may be believed: session cookie, CSRF token, origin of the request."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.accounts import usecases as accounts
from app.accounts.actor import Actor
from app.kit.db import read_session
from app.kit.errors import BadInput, Forbidden
from app.kit.i18n import N_, known, negotiate
from app.settings import settings

LANGUAGE_COOKIE, THEME_COOKIE = "qg_lang", "qg_theme"
THEMES = ("system", "light", "dark")
SESSION_HOURS = 12
# What is read of a form at all. Each form has its own, lower limits, and says them beside the field; whoever is a little above those gets the form
# back with what was typed. These bound what a hostile sender costs, as BODY_LIMIT does.
PARSED_FILES, PARSED_FIELDS, LONGEST_PART = 200, 300, 16 * 2**20
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class SignInNeeded(Exception):  # noqa: N818
    """Nobody is signed in; the web leads to the sign-in page, the API answers 401."""


class FormUnread(BadInput):
    """A form that holds more than is read, or that is cut: the page says which limit, and that the browser still has what was typed."""

    def __init__(self, said: str) -> None:
        if said.startswith("Too many files"):
            sentence = N_(
                "The form holds more than {files} files, so nothing of it was taken. Go back in your browser, which still has what you typed."
            )
        elif said.startswith("Too many fields"):
            sentence = N_(
                "The form holds more than {fields} fields, so nothing of it was taken. Go back in your browser, which still has what you typed."
            )
        elif "exceeded maximum size" in said:
            sentence = N_(
                "A text of the form is larger than {limit} MiB, so nothing of it was taken. Go back in your browser, which still has what you typed."
            )
        else:
            sentence = N_("The form did not arrive whole, so nothing of it was taken. Go back in your browser and send it again.")
        super().__init__("form_unread", sentence, files=PARSED_FILES, fields=PARSED_FIELDS, limit=LONGEST_PART // 2**20)


@dataclass(frozen=True)
class Visitor:
    """The person at the page: who, in which language, in which light. `actor` is None before the sign-in."""

    actor: Actor | None
    csrf: str
    locale: str
    theme: str


@dataclass(frozen=True)
class Guest(Visitor):
    """A visitor who has signed in."""

    actor: Actor


def session_cookie() -> str:
    """Return the cookie's name; with `secure_cookies` the browser itself binds it to this host and to https."""
    return "__Host-qg_session" if settings().secure_cookies else "qg_session"


def set_session(response: Response, token: str) -> None:
    """Put the session's token into the browser, out of reach of scripts and of other sites' forms."""
    response.set_cookie(
        session_cookie(), token, max_age=SESSION_HOURS * 3600, path="/", secure=settings().secure_cookies, httponly=True, samesite="lax"
    )


def clear_session(response: Response) -> None:
    """Take the session's token out of the browser."""
    response.delete_cookie(session_cookie(), path="/", secure=settings().secure_cookies, httponly=True, samesite="lax")


def visitor(request: Request) -> Visitor:
    """Return who is at the page. The language: `?lang`, then the cookie, then the person's own, then the service's."""
    token = request.cookies.get(session_cookie(), "")
    found = None
    if token:
        with read_session() as s:
            found = accounts.actor_of_session(s, token)
    actor, csrf = found if found else (None, "")
    return _at_the_page(request, actor, csrf)


def stranger(request: Request) -> Visitor:
    """Return who is at the page as far as the request itself tells it: for the page that says that the database is away."""
    return _at_the_page(request, None, "")


def _at_the_page(request: Request, actor: Actor | None, csrf: str) -> Visitor:
    chosen = request.query_params.get("lang") or request.cookies.get(LANGUAGE_COOKIE)
    if chosen:
        locale = known(chosen)
    elif actor:
        locale = known(actor.locale)
    else:
        locale = negotiate(None)
    theme = request.query_params.get("theme") or request.cookies.get(THEME_COOKIE) or "system"
    value = Visitor(actor, csrf, locale, theme if theme in THEMES else "system")
    request.state.visitor = value
    return value


def signed_in(found: Annotated[Visitor, Depends(visitor)]) -> Guest:
    """Return the visitor when signed in, or lead to the sign-in page."""
    if found.actor is None:
        raise SignInNeeded
    return Guest(found.actor, found.csrf, found.locale, found.theme)


def still_signed_in(request: Request) -> Callable[[Session], Actor | None]:
    """Return the question who stands behind this request's cookie by now, for an answer that outlasts its request; None: nobody any more."""
    token = request.cookies.get(session_cookie(), "")

    def ask(s: Session) -> Actor | None:
        found = accounts.actor_of_session(s, token, noted=False)
        return found[0] if found else None

    return ask


def require_same_origin(request: Request) -> None:
    """Raise Forbidden when a state-changing request was made by a page of another site.

    Browsers send `Sec-Fetch-Site` on every request and `Origin` on every POST; a page cannot set either.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    foreign = site not in (None, "same-origin", "none")
    if origin is not None:
        allowed = {request.headers.get("host", ""), urlsplit(settings().public_url).netloc}
        foreign = foreign or _host_of(origin) not in allowed - {""}
    if foreign:
        raise Forbidden(
            "foreign_origin", N_("This request came from a page of another site, so nothing was done. Open the page here and send the form again.")
        )


def _host_of(origin: str) -> str:
    """Return host and port of an origin; "" for one that is no address at all."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def require_csrf(request: Request, sent: str, expected: str) -> None:
    """Raise Forbidden unless the form carries the token of this very session and comes from our own page."""
    require_same_origin(request)
    if not expected or not hmac.compare_digest(sent.encode(), expected.encode()):
        raise Forbidden(
            "csrf",
            N_("The form's security token is missing or belongs to an earlier session, so nothing was done. Reload the page and send it again."),
        )


async def open_form(request: Request) -> FormData:
    """Read a form that needs no session (signing in), from our own page only."""
    require_same_origin(request)
    return await _form_of(request)


async def checked_form(request: Request, guest: Annotated[Guest, Depends(signed_in)]) -> FormData:
    """Read the form of a signed-in visitor, after its token and its origin were checked."""
    form = await _form_of(request)
    require_csrf(request, text_of(form, "csrf"), guest.csrf)
    return form


async def _form_of(request: Request) -> FormData:
    try:
        form = await request.form(max_files=PARSED_FILES, max_fields=PARSED_FIELDS, max_part_size=LONGEST_PART)
        for text in (word for pair in form.multi_items() for word in _words_of(pair)):
            if "\0" in text:
                raise BadInput("no_text", N_("The form holds a character that is no text (NUL)."))
            text.encode()
    except HTTPException as error:  # the parser's own refusals: nothing of the form is there to be shown again
        raise FormUnread(str(error.detail)) from None
    except UnicodeError:  # a charset of the sender's choice decodes to half characters, or not at all
        raise BadInput("no_text", N_("The form is not UTF-8 text.")) from None
    return form


def _words_of(pair: tuple[str, str | UploadFile]) -> tuple[str, str]:
    """Return a field's name, and its text or the name of its file."""
    name, value = pair
    return name, value if isinstance(value, str) else value.filename or ""


def text_of(form: FormData, name: str) -> str:
    """Return one text field of a form, stripped; an upload or a missing field is an empty text."""
    value = form.get(name)
    return value.strip() if isinstance(value, str) else ""


def local_path(target: str) -> str:
    """Return a path of this very site, or the board: a sign-in never leads elsewhere."""
    try:
        parts = urlsplit(target)
    except ValueError:  # e.g. `//[`
        return "/"
    if parts.scheme or parts.netloc or not target.startswith("/") or target.startswith(("//", "/\\")) or "\n" in target or "\\" in target:
        return "/"
    return target


def sign_in_url(request: Request) -> str:
    """Return the sign-in page that leads back here."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"/sign-in?next={quote(here, safe='')}" if request.method in SAFE_METHODS and here != "/" else "/sign-in"
