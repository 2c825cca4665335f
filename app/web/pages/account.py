"""My account: the password, and the tokens of the REST API."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from app.accounts import upkeep, usecases
from app.accounts.usecases import LONGEST_TOKEN_DAYS
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, FieldProblem, QuadgateError
from app.kit.i18n import N_
from app.web import flash
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, clear_session, signed_in, text_of

router = APIRouter(prefix="/account")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]
DAYS = (7, 30, 90, 180, LONGEST_TOKEN_DAYS)


@router.get("")
def account(request: Request, who: Signed) -> Response:
    """Show the account of the person who is signed in."""
    return account_page(request, who)


def account_page(request: Request, who: Guest, *, made: str = "", section: str = "", error: QuadgateError | None = None) -> Response:
    """Render the account; a fresh token is shown on this page, this once. `section` says which form was refused."""
    with read_session() as s:
        tokens = upkeep.tokens(s, login=who.actor.login, actor=who.actor)
        inbox = waiting_for(s, who)
    wrong = {problem.pointer.strip("/"): problem.text(who.locale) for problem in getattr(error, "errors", ())}
    status = error.status if error else 200
    return page(
        request, "account.html", status, tokens=tokens, made=made, section=section, wrong=wrong, days=DAYS, inbox=inbox, **refusal(error, who)
    )


@router.post("/password")
def change_password(request: Request, who: Signed, form: Form) -> Response:
    """Change the password; all sessions end, and the door opens with the new one."""
    try:
        new = _raw(form, "new")
        if new != _raw(form, "again"):
            raise BadInput(
                "not_the_same", N_("The password was not changed."), [FieldProblem("/again", N_("This is not the same as the new password above."))]
            )
        with write_session() as s:
            upkeep.change_password(s, current=_raw(form, "current"), new=new, actor=who.actor)
    except QuadgateError as error:
        return account_page(request, who, section="password", error=error)
    response = flash.redirect("/sign-in", "password_changed")
    clear_session(response)
    return response


@router.post("/tokens")
def issue(request: Request, who: Signed, form: Form) -> Response:
    """Make a token and show it."""
    name, days = text_of(form, "name"), text_of(form, "days")
    try:
        with write_session() as s:
            made = usecases.issue_token(
                s, user_id=who.actor.user_id, name=name, days=int(days) if days.isdecimal() and len(days) < 5 else 0, actor=who.actor
            )
    except QuadgateError as error:
        return account_page(request, who, section="token", error=error)
    return account_page(request, who, made=made)


@router.post("/tokens/{token_id}/revoke")
def revoke(token_id: str, who: Signed, _form: Form) -> Response:
    """Revoke a token."""
    with write_session() as s:
        upkeep.revoke_token(s, token_id=token_id, actor=who.actor)
    return flash.redirect("/account", "token_revoked")


@router.get("/password")
@router.get("/tokens")
def back() -> Response:
    """Lead a reloaded form back to the page that it stands on."""
    return RedirectResponse("/account", 303)


def _raw(form: FormData, name: str) -> str:
    """Return a password as typed: its spaces count."""
    value = form.get(name)
    return value if isinstance(value, str) else ""
