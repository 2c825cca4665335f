"""Who calls the API: a bearer token, or a person's session with its CSRF token."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from app.accounts import usecases as accounts
from app.accounts.actor import Actor
from app.api.problems import Unauthenticated
from app.kit.db import read_session
from app.web.security import SAFE_METHODS, require_csrf, session_cookie, still_signed_in

bearer = HTTPBearer(auto_error=False, scheme_name="token", description="An API token (`qg_...`). It can do what its user can, except approve.")
cookie = APIKeyCookie(
    name="qg_session", auto_error=False, scheme_name="session", description="A signed-in browser; other methods than GET also need X-CSRF-Token."
)


def caller(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    _session: Annotated[str | None, Depends(cookie)],
) -> Actor:
    """Return who calls. A token wins over a session; neither, or one that is not valid any more, is a 401.

    An answer that outlasts the request asks `request.state.still(session)` who that is by now; None: nobody any more.
    """
    if credentials is not None:
        with read_session() as s:
            actor = accounts.actor_of_token(s, credentials.credentials)
        if actor is None:
            raise Unauthenticated
        request.state.still = lambda s: accounts.actor_of_token(s, credentials.credentials, noted=False)
    else:
        with read_session() as s:
            found = accounts.actor_of_session(s, request.cookies.get(session_cookie(), ""))
        if found is None:
            raise Unauthenticated
        actor, csrf = found
        if request.method not in SAFE_METHODS:
            require_csrf(request, request.headers.get("x-csrf-token", ""), csrf)
        request.state.still = still_signed_in(request)
    request.state.actor = actor
    return actor


Caller = Annotated[Actor, Depends(caller)]
