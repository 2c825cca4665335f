"""The register of an engagement: deviations, waivers, punch items."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.deviations import usecases as deviations
from app.engagements import usecases as engagements
from app.kit.db import read_session, write_session
from app.kit.errors import NotFound, QuadgateError
from app.kit.i18n import N_
from app.web import flash, views
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, text_of

router = APIRouter(prefix="/engagements/{engagement_id}/register")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]
FIELDS = ("kind", "gate", "severity", "what", "reason", "owner_party", "owner", "due")


@router.get("")
def register(request: Request, engagement_id: str, who: Signed) -> Response:
    """Show the register, with the forms that record and close."""
    return register_page(request, who, engagement_id)


def register_page(
    request: Request,
    who: Guest,
    engagement_id: str,
    entered: dict[str, str] | None = None,
    error: QuadgateError | None = None,
    closing: str = "",
) -> Response:
    """Render the register; what was wrong is said beside its field, and what was typed is kept. `closing`: the entry that was to be closed."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
        inbox = waiting_for(s, who)
    wrong = {problem.pointer.strip("/"): problem.text(who.locale) for problem in getattr(error, "errors", ())}
    return page(
        request,
        "register.html",
        error.status if error else 200,
        e=data,
        entered={name: (entered or {}).get(name, "") for name in (*FIELDS, "closing")},
        wrong=wrong,
        closing=closing,
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=inbox,
        **refusal(error, who),
    )


@router.post("")
def record(request: Request, engagement_id: str, who: Signed, form: Form) -> Response:
    """Record an entry."""
    entered = {name: text_of(form, name) for name in FIELDS}
    try:
        with write_session() as s:
            deviations.record_deviation(s, engagement_id=engagement_id, actor=who.actor, **entered)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return register_page(request, who, engagement_id, entered, error)
    return flash.redirect(f"/engagements/{engagement_id}/register", "waiver_recorded" if entered["kind"] == "waiver" else "entry_recorded")


@router.post("/{deviation_id}/close")
def close(request: Request, engagement_id: str, deviation_id: str, who: Signed, form: Form) -> Response:
    """Close an entry with a note."""
    closing = text_of(form, "closing")
    try:
        with write_session() as s:
            if deviations.deviation_seen(s, deviation_id=deviation_id, actor=who.actor)["engagement_id"] != engagement_id:
                raise NotFound("no_such_deviation", N_("There is no entry {id} in any register."), id=deviation_id)
            deviations.close_deviation(s, deviation_id=deviation_id, closing=closing, actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return register_page(request, who, engagement_id, {"closing": closing}, error, deviation_id)
    return flash.redirect(f"/engagements/{engagement_id}/register", "entry_closed")
