"""Revising the plan: differences as YAML, first looked at, then kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.engagements import usecases as engagements
from app.kit.db import read_session, write_session
from app.kit.errors import QuadgateError
from app.plans import revise
from app.plans import usecases as plans
from app.plans.revise import Preview
from app.web import flash, views
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, text_of

router = APIRouter(prefix="/engagements/{engagement_id}/plan/revise")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("")
def form(request: Request, engagement_id: str, who: Signed) -> Response:
    """Show the form."""
    return revise_page(request, who, engagement_id)


def revise_page(
    request: Request, who: Guest, engagement_id: str, text: str = "", seen: Preview | None = None, error: QuadgateError | None = None
) -> Response:
    """Render the form with what the text would change, or with what is wrong with it right below the text."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
        inbox = waiting_for(s, who)
    return page(
        request,
        "revise.html",
        error.status if error else 200,
        e=data,
        text=text,
        seen=seen,
        rows=views.plan_changes(seen.changes, who.locale) if seen else [],
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=inbox,
        **refusal(error, who),
    )


@router.post("")
def revise_plan(request: Request, engagement_id: str, who: Signed, form: Form) -> Response:
    """Look at a change (`do` is look), or keep it as the next revision (`do` is keep) if the plan is still the one that was looked at."""
    value = form.get("text")
    text = value if isinstance(value, str) else ""
    try:
        differences = revise.read_differences(text)
        if text_of(form, "do") == "keep":
            with write_session() as s:
                plans.add_revision(s, engagement_id=engagement_id, differences=differences, actor=who.actor, base=text_of(form, "base") or "-")
            return flash.redirect(f"/engagements/{engagement_id}/plan", "plan_revised")
        with read_session() as s:
            seen = revise.preview(s, engagement_id=engagement_id, differences=differences, actor=who.actor)
    except QuadgateError as error:
        if error.status in (403, 404):
            raise
        return revise_page(request, who, engagement_id, text, error=error)
    return revise_page(request, who, engagement_id, text, seen)
