"""What if: one judged attempt under another plan. A page that shows and never keeps."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.attempts import usecases as attempts
from app.attempts.forms import LARGEST_FILE
from app.attempts.whatif import what_if
from app.kit.db import read_session
from app.kit.errors import BadInput, QuadgateError
from app.kit.i18n import N_
from app.plans.revise import read_differences
from app.web import views
from app.web.forms import Upload, uploads
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in

router = APIRouter(prefix="/attempts/{attempt_id}/whatif")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("")
def form(request: Request, attempt_id: str, who: Signed) -> Response:
    """Show the form."""
    return whatif_page(request, who, attempt_id)


async def files_of(form: Form) -> list[Upload]:
    """Return the file of a form, read."""
    return await uploads(form, "file")


@router.post("")
def look(request: Request, attempt_id: str, who: Signed, form: Form, files: Annotated[list[Upload], Depends(files_of)]) -> Response:
    """Show what the differences in the text, or in the file, would change; with neither, what this judge alone answers otherwise."""
    value = form.get("text")
    text = value if isinstance(value, str) else ""
    try:
        if files and not text.strip():
            text = _decoded(files[0])
        differences = read_differences(text) if text.strip() else None
        with read_session() as s:
            told = what_if(s, attempt_id=attempt_id, differences=differences, actor=who.actor)
    except QuadgateError as error:
        if error.status in (403, 404):
            raise
        return whatif_page(request, who, attempt_id, text, error=error)
    return whatif_page(request, who, attempt_id, text, told)


def whatif_page(
    request: Request, who: Guest, attempt_id: str, text: str = "", told: dict[str, Any] | None = None, error: QuadgateError | None = None
) -> Response:
    """Render the form with what would be answered otherwise, or with what is wrong with the text."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
        inbox = waiting_for(s, who)
    return page(
        request,
        "whatif.html",
        error.status if error else 200,
        a=data,
        name=views.attempt_name(data, who.locale),
        text=text,
        w=views.otherwise(told, who.locale) if told else None,
        marks=views.marks(data["engagement"], simulated=data["simulated"], rehearsal=data["rehearsal"]),
        inbox=inbox,
        **refusal(error, who),
    )


def _decoded(file: Upload) -> str:
    if len(file[1]) > LARGEST_FILE:  # only so much of it was read
        raise BadInput("file_too_large", N_("{name} is larger than {limit} MiB."), name=file[0], limit=LARGEST_FILE // 2**20)
    try:
        return file[1].decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("not_text", N_("{file} is no text in UTF-8."), file=file[0]) from None
