"""One attempt judged again, and the causes of the events that broke its soak."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.attempts import usecases as attempts
from app.attempts.judging import judge_again
from app.kit.db import write_session
from app.kit.errors import QuadgateError
from app.web import flash
from app.web.pages.attempts import attempt_page
from app.web.security import Guest, checked_form, signed_in, text_of

router = APIRouter(prefix="/attempts/{attempt_id}")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]


@router.post("/judgements")
def judge(request: Request, attempt_id: str, who: Signed, form: Form) -> Response:
    """Judge again from stored evidence and present inputs."""
    try:
        judge_again(write_session, attempt_id=attempt_id, why=text_of(form, "why"), actor=who.actor, reasoned=True)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return attempt_page(request, who, attempt_id, error)
    return flash.redirect(f"/attempts/{attempt_id}", "judged_again")


@router.post("/causes")
def claim_cause(request: Request, attempt_id: str, who: Signed, form: Form) -> Response:
    """Record the cause of one event; both parties decide on it in the inbox."""
    event, kind, text = (text_of(form, name) for name in ("event", "kind", "text"))
    try:
        with write_session() as s:
            attempts.claim_cause(s, attempt_id=attempt_id, event=event, kind=kind, text=text, actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return attempt_page(request, who, attempt_id, error)
    return flash.redirect(f"/attempts/{attempt_id}", "event_cause_claimed")
