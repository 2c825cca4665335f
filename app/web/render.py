"""Turn a template and a dataset into a page. Everything that is put in is escaped; a name that does not exist is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from app.accounts.roles import Permission, roles_with
from app.kit.clock import now, shown
from app.kit.errors import QuadgateError
from app.kit.i18n import format_ago, format_bytes, language_tag, translate
from app.kit.words import word
from app.settings import settings
from app.web import flash
from app.web.security import LANGUAGE_COOKIE, THEME_COOKIE, THEMES, Visitor, visitor
from gates.text import Text

PREFERENCE_SECONDS = 365 * 24 * 3600


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the one template environment. `autoescape=True` holds for every file name, not only for .html."""
    env = Environment(
        loader=FileSystemLoader(settings().template_dir / "web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.globals["THEMES"] = THEMES
    env.globals["PERMISSIONS"] = Permission
    env.globals["roles_with"] = roles_with
    return env


def text_in(value: Any, locale: str) -> str:
    """Return a sentence that travels in both languages (`Text` or its JSON), or plain text as it is."""
    if value is None:
        return ""
    if isinstance(value, Text):
        return value.in_language(locale)
    if isinstance(value, Mapping) and "en" in value:
        return str(value.get(language_tag(locale)) or value["en"])
    return str(value)


_UNITS = r"%|(?:[mµ]?s|min|h|[KMGT]i?B|tok/s|pp)(?![A-Za-z/])|个百分点"
_BEFORE_A_UNIT = re.compile(rf"(?<=\d) (?={_UNITS})")


def unbroken(text: str) -> str:
    """Return a sentence in which no line begins with a unit whose number ended the line before."""
    return _BEFORE_A_UNIT.sub("\u00a0", text)


def time_of(value: datetime | str | None) -> datetime | None:
    """Return an aware UTC time of a stored or JSON time; None for none or for text that is no time."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if value is None:
        return None
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


def by(actor: str, locale: str) -> str:
    """Return who did something, and by which way, of a label like "li.wei (web)"."""
    login, _, via = actor.rstrip(")").rpartition(" (")
    return f"{login} · {word('via', via, locale)}" if login else actor


def ago(value: datetime | str | None, locale: str) -> str:
    """Return how long ago a time was ("3 minutes ago"), or how far ahead it lies ("in 2 hours")."""
    at = time_of(value)
    if at is None:
        return ""
    delta = now() - at
    if abs(delta.total_seconds()) < 1:
        return translate("just now", locale)
    span = format_ago(abs(delta), locale)
    return translate("{span} ago" if delta.total_seconds() > 0 else "in {span}", locale, span=span)


def absolute(value: datetime | str | None) -> str:
    """Return a time to the second in the service's zone, which is named: the same on every face and for both parties."""
    return shown(time_of(value))


def iso(value: datetime | str | None) -> str:
    """Return a time for the `datetime` attribute."""
    at = time_of(value)
    return at.isoformat(timespec="seconds") if at else ""


def here(request: Request, **changes: str) -> str:
    """Return the present address with some query parameters changed: a switch of language or light keeps the page."""
    query = dict(parse_qsl(request.url.query, keep_blank_values=True)) | changes
    path = request.url.path if request.method in {"GET", "HEAD"} else "/"
    return f"{path}?{urlencode(query)}"


def page(request: Request, template: str, status: int = 200, /, **data: Any) -> HTMLResponse:
    """Render a template for the visitor of a request; remembers a language or light that the address asks for."""
    who: Visitor = getattr(request.state, "visitor", None) or visitor(request)
    locale = who.locale

    def t(msgid: str, /, **params: Any) -> str:
        return translate(msgid, locale, **params)

    context: dict[str, Any] = {
        "t": t,
        "say": lambda value: unbroken(text_in(value, locale)),
        "word": lambda kind, value: word(kind, value, locale),
        "by": lambda value: by(value, locale),
        "ago": lambda value: ago(value, locale),
        "absolute": absolute,
        "iso": iso,
        "bytes": lambda value: format_bytes(int(value), locale),
        "here": lambda **changes: here(request, **changes),
        "lang": language_tag(locale),
        "locale": locale,
        "zone": settings().time_zone,
        "theme": who.theme,
        "actor": who.actor,
        "csrf": who.csrf,
        "path": request.url.path,
        "request_id": request.scope.get("state", {}).get("request_id", ""),
        "inbox": None,
        "flash": flash.taken(request, locale),
        "marks": {"simulated": False, "rehearsal": False, "stopped": None},
    }
    body = environment().get_template(template).render(context | data)
    response = HTMLResponse(body, status, headers={"Content-Language": language_tag(locale), "Vary": "Cookie, Accept-Language"})
    if flash.COOKIE in request.cookies:
        flash.forget(response)
    for name, cookie, value in (("lang", LANGUAGE_COOKIE, language_tag(locale)), ("theme", THEME_COOKIE, who.theme)):
        if name in request.query_params:
            response.set_cookie(cookie, value, max_age=PREFERENCE_SECONDS, path="/", secure=settings().secure_cookies, samesite="lax")
    return response


def problem_page(request: Request, error: QuadgateError) -> HTMLResponse:
    """Render the page of an error: what failed, the code and the request id, never a stack trace."""
    who: Visitor = getattr(request.state, "visitor", None) or visitor(request)
    return page(
        request,
        "problem.html",
        error.status,
        status=error.status,
        code=error.code,
        sentence=error.text(who.locale),
        errors=getattr(error, "errors", ()),
    )
