"""The wipes of an engagement: ordered here, approved in the sign-off inbox, carried out by the command line, shown here with their records."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.engagements import usecases as engagements
from app.kit.db import read_session, write_session
from app.kit.errors import NotFound, QuadgateError
from app.kit.i18n import N_
from app.web import files, flash, views
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, text_of
from app.wipes import usecases as wipes
from app.wipes.views import WAYS

router = APIRouter(prefix="/engagements/{engagement_id}/wipes")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("")
def shown(request: Request, engagement_id: str, who: Signed) -> Response:
    """Show the orders with their records, and the form that orders."""
    return wipes_page(request, who, engagement_id)


def wipes_page(
    request: Request,
    who: Guest,
    engagement_id: str,
    entered: dict[str, str] | None = None,
    chosen: list[str] | None = None,
    error: QuadgateError | None = None,
) -> Response:
    """Render the page; what was wrong is said beside its field, and what was chosen is kept."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
        known = wipes.wipes(s, engagement_id=engagement_id, actor=who.actor)
        inbox = waiting_for(s, who)
    wrong = {problem.pointer.strip("/"): problem.text(who.locale) for problem in getattr(error, "errors", ())}
    return page(
        request,
        "wipes.html",
        error.status if error else 200,
        e=data,
        items=known["items"],
        drives=known["drives"],
        ways=tuple(WAYS),
        entered={name: (entered or {}).get(name, "") for name in ("way", "reason")},
        chosen=chosen or [],
        wrong=wrong,
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=inbox,
        **refusal(error, who),
    )


@router.post("")
def order(request: Request, engagement_id: str, who: Signed, form: Form) -> Response:
    """Order a wipe. Nothing happens before both parties approve it."""
    entered = {name: text_of(form, name) for name in ("way", "reason")}
    chosen = [value for value in form.getlist("serial") if isinstance(value, str)]
    try:
        with write_session() as s:
            wipes.order_wipe(s, engagement_id=engagement_id, serials=chosen, actor=who.actor, **entered)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return wipes_page(request, who, engagement_id, entered, chosen, error)
    return flash.redirect(f"/engagements/{engagement_id}/wipes", "wipe_ordered")


@router.post("/{wipe_id}/withdraw")
def withdraw(request: Request, engagement_id: str, wipe_id: str, who: Signed, form: Form) -> Response:
    """Withdraw an order that was not begun."""
    try:
        with write_session() as s:
            if wipes.wipe_seen(s, wipe_id=wipe_id, actor=who.actor)["engagement_id"] != engagement_id:
                raise NotFound("no_such_wipe", N_("There is no wipe order {id}."), id=wipe_id)
            wipes.withdraw_wipe(s, wipe_id=wipe_id, reason=text_of(form, "withdrawn"), actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return wipes_page(request, who, engagement_id, error=error)
    return flash.redirect(f"/engagements/{engagement_id}/wipes", "wipe_withdrawn")


@router.get("/files/{file_id}")
def file(engagement_id: str, file_id: str, who: Signed) -> Response:  # noqa: ARG001 - the file knows its engagement
    """Return a file that a wipe brought home."""
    return files.of_wipe(file_id, who.actor)
