"""Signing in and out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from app.accounts import usecases as accounts
from app.kit.db import write_session
from app.kit.errors import Forbidden
from app.web.render import page
from app.web.security import (
    Guest,
    Visitor,
    checked_form,
    clear_session,
    local_path,
    open_form,
    session_cookie,
    set_session,
    signed_in,
    text_of,
    visitor,
)

router = APIRouter()


@router.get("/sign-in")
def sign_in_page(request: Request, who: Annotated[Visitor, Depends(visitor)]) -> Response:
    """Show the door; who is inside already is led to where they wanted to go."""
    target = local_path(request.query_params.get("next", "/"))
    if who.actor:
        return RedirectResponse(target, 303)
    return page(request, "sign_in.html", next=target, login="", sentence="")


@router.post("/sign-in")
def sign_in(request: Request, who: Annotated[Visitor, Depends(visitor)], form: Annotated[FormData, Depends(open_form)]) -> Response:
    """Sign in: a new session each time, so that one planted before is worth nothing."""
    password = form.get("password")
    try:
        with write_session() as s:
            done = accounts.sign_in(s, login=text_of(form, "login"), password=password if isinstance(password, str) else "")
    except Forbidden as error:
        return page(
            request, "sign_in.html", 403, next=local_path(text_of(form, "next")), login=text_of(form, "login"), sentence=error.text(who.locale)
        )
    response = RedirectResponse(local_path(text_of(form, "next") or "/"), 303)
    set_session(response, done.token)
    return response


@router.post("/sign-out")
def sign_out(request: Request, _who: Annotated[Guest, Depends(signed_in)], _form: Annotated[FormData, Depends(checked_form)]) -> Response:
    """End the session here and on the server."""
    with write_session() as s:
        accounts.sign_out(s, token=request.cookies.get(session_cookie(), ""))
    response = RedirectResponse("/sign-in", 303)
    clear_session(response)
    return response
