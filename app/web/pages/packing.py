"""The packing list of an engagement: what is in force, what is proposed, and the form that proposes another one."""

from __future__ import annotations

from typing import Annotated, Any

import yaml
from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.engagements import usecases as engagements
from app.kit.db import read_session, write_session
from app.kit.errors import QuadgateError
from app.packing import usecases as packing
from app.web import flash, views
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, text_of

router = APIRouter(prefix="/engagements/{engagement_id}/packing")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("")
def shown(request: Request, engagement_id: str, who: Signed) -> Response:
    """Show the list with its revisions, and the form that proposes."""
    return packing_page(request, who, engagement_id)


def packing_page(
    request: Request,
    who: Guest,
    engagement_id: str,
    text: str | None = None,
    reason: str = "",
    seen: dict[str, Any] | None = None,
    error: QuadgateError | None = None,
) -> Response:
    """Render the page; the text begins with the list in force, and what was typed is kept beside what is wrong with it."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
        known = packing.packing(s, engagement_id=engagement_id, actor=who.actor)
        inbox = waiting_for(s, who)
    return page(
        request,
        "packing.html",
        error.status if error else 200,
        e=data,
        p=known,
        text=as_text(known["packing_list"]) if text is None else text,
        reason=reason,
        seen=seen,
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=inbox,
        **refusal(error, who),
    )


@router.post("")
def propose(request: Request, engagement_id: str, who: Signed, form: Form) -> Response:
    """Look at a change (`do` is look), or propose it (`do` is keep) if the list in force is still the one that was looked at."""
    value, reason, seen = form.get("text"), text_of(form, "reason"), None
    text = value if isinstance(value, str) else ""
    try:
        entries = packing.read_text(text)
        if text_of(form, "do") == "keep":
            with write_session() as s:
                packing.propose(s, engagement_id=engagement_id, entries=entries, reason=reason, actor=who.actor, base=text_of(form, "base") or "-")
            return flash.redirect(f"/engagements/{engagement_id}/packing", "packing_proposed")
        with read_session() as s:
            seen = packing.preview(s, engagement_id=engagement_id, entries=entries, actor=who.actor)
    except QuadgateError as error:
        if error.status in (403, 404):
            raise
        return packing_page(request, who, engagement_id, text, reason, error=error)
    return packing_page(request, who, engagement_id, text, reason, seen)


def as_text(entries: list[Any]) -> str:
    """Return a packing list as the YAML that an engagement file holds: one entry a line."""
    return "".join(
        f"- {yaml.safe_dump(entry, allow_unicode=True, default_flow_style=True, sort_keys=False, width=10**6).strip()}\n" for entry in entries
    )
