"""One attempt: the live page, its forms, its stream."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import RedirectResponse, Response

from app.accounts.roles import Permission
from app.attempts import usecases as attempts
from app.attempts.causes import KINDS as CAUSE_KINDS
from app.evidence import uploads as kept_uploads
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, FieldProblem, NotFound, QuadgateError
from app.kit.i18n import N_
from app.reports import usecases as reports
from app.web import charts, flash, stream, views
from app.web.forms import PHOTO_LIMITS, Upload, elsewhere, fields_of, named_in, read_form, uploads
from app.web.lines import all_lines
from app.web.pages.board import refusal, waiting_for
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, still_signed_in, text_of

router = APIRouter(prefix="/attempts/{attempt_id}")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]
FIRST_EVENTS = 3000  # rendered with the page; the stream brings all later ones


@router.get("")
def attempt(request: Request, attempt_id: str, who: Signed) -> Response:
    """Show an attempt as it stands; what comes later arrives by the stream."""
    return attempt_page(request, who, attempt_id)


def attempt_page(request: Request, who: Guest, attempt_id: str, error: QuadgateError | None = None) -> Response:
    """Render an attempt; an action that was refused is shown with its sentence."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
        events = attempts.events(s, attempt_id=attempt_id, after=0, limit=FIRST_EVENTS, actor=who.actor)
        newest = attempts.newest_samples(s, attempt_id=attempt_id, actor=who.actor)
        inbox = waiting_for(s, who)
    document = data["document"]
    tables = (
        views.verdict_tables(document, who.locale)
        if document
        else {
            "checks": [],
            "beside": {"sentence": "", "rows": []},
            "intervals": False,
            "matrix": {"rows": [], "arms": []},
            "claims": [],
            "not_tested": [],
            "not_asked": [],
        }
    )
    return page(
        request,
        "attempt.html",
        error.status if error else 200,
        a=data,
        v=document,
        name=views.attempt_name(data, who.locale),
        steps=views.steps(data, who.locale),
        done=sum(step["status"] == "done" for step in data["steps"]),
        measuring=any(step["kind"] in views.MEASURING for step in data["steps"]),
        streaming=data["status"] not in views.ENDED or len(events) == FIRST_EVENTS,
        mark=views.mark(data),
        reports=views.editions(data["reports"], who.locale),
        claimable=views.claimable(data) and who.actor.may(Permission.CLAIM_RIG_CAUSE),
        cause_kinds=[{"key": key, "title": title.json()} for key, title in CAUSE_KINDS.items()],
        phase=stream.phase_words(newest["record"], who.locale),
        lines=all_lines(events),
        last_event=events[-1]["id"] if events else 0,
        last_sample=newest["last"],
        charts=charts.of_verdict(document, who.locale) if document else [],
        marks=views.marks(data["engagement"], simulated=data["simulated"], rehearsal=data["rehearsal"]),
        inbox=inbox,
        **tables,
        **refusal(error, who),
    )


@router.get("/stream")
def live(request: Request, attempt_id: str, who: Signed) -> Response:
    """Stream what happens."""
    return stream.respond(request, attempt_id, still_signed_in(request), who.locale)


@router.get("/charts/{name}.svg")
def chart(request: Request, attempt_id: str, name: str, who: Signed) -> Response:
    """Return a chart as a picture of its own: nothing in it can reach the page."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
    theme = "dark" if request.query_params.get("ground") == "dark" else "light"
    svg = charts.draw(data["document"], name, who.locale, theme) if data["document"] else None
    if svg is None:
        raise NotFound("no_such_chart", N_("This verdict has no chart {name}."), name=name)
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'", "Cache-Control": "private, max-age=86400"}
    return Response(svg, media_type="image/svg+xml", headers=headers)


@router.post("/retry")
def retry(request: Request, attempt_id: str, who: Signed, _form: Form) -> Response:
    """Let the failed step be tried again."""
    try:
        with write_session() as s:
            attempts.retry(s, attempt_id=attempt_id, actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return attempt_page(request, who, attempt_id, error)
    return RedirectResponse(f"/attempts/{attempt_id}", 303)


@router.post("/reports")
def print_again(attempt_id: str, who: Signed, _form: Form) -> Response:
    """Print the report again with what was recorded since."""
    reports.print_again(write_session, attempt_id=attempt_id, actor=who.actor)
    return flash.redirect(f"/attempts/{attempt_id}", "printed")


@router.post("/extend")
def extend(request: Request, attempt_id: str, who: Signed, form: Form) -> Response:
    """Let an inconclusive attempt go on with the planned run pairs."""
    try:
        with write_session() as s:
            attempts.extend(s, attempt_id=attempt_id, said=text_of(form, "said"), actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return attempt_page(request, who, attempt_id, error)
    return RedirectResponse(f"/attempts/{attempt_id}", 303)


@router.post("/rig-cause")
def claim_rig_cause(request: Request, attempt_id: str, who: Signed, form: Form) -> Response:
    """Claim a cause in the rig; both parties decide on it in the inbox."""
    try:
        with write_session() as s:
            attempts.claim_rig_cause(s, attempt_id=attempt_id, cause=text_of(form, "cause"), actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return attempt_page(request, who, attempt_id, error)
    return flash.redirect(f"/attempts/{attempt_id}", "cause_claimed")


@router.get("/cancel")
def ask_cancel(request: Request, attempt_id: str, who: Signed) -> Response:
    """Ask for the reason and the typed confirmation."""
    return cancel_page(request, who, attempt_id)


def cancel_page(request: Request, who: Guest, attempt_id: str, reason: str = "", error: QuadgateError | None = None) -> Response:
    """Render the question."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
    return page(
        request,
        "cancel.html",
        error.status if error else 200,
        a=data,
        name=views.attempt_name(data, who.locale),
        reason=reason,
        confirmation=confirmation_of(data["engagement"]["code"], data["gate"]),
        marks=views.marks(data["engagement"], simulated=data["simulated"], rehearsal=data["rehearsal"]),
        **refusal(error, who),
    )


def confirmation_of(code: str, gate: str) -> str:
    """Return what must be typed to cancel: it names what is lost, so no click can do it by accident."""
    return f"{code}-{gate}"


@router.post("/cancel")
def cancel(request: Request, attempt_id: str, who: Signed, form: Form) -> Response:
    """Ask the engine to cancel, after the typed confirmation."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
    expected = confirmation_of(data["engagement"]["code"], data["gate"])
    reason = text_of(form, "reason")
    try:
        if text_of(form, "confirmation") != expected:
            field = FieldProblem("/confirmation", N_("Type {word}, exactly."), {"word": expected})
            raise BadInput("not_confirmed", N_("Nothing was canceled: the confirmation does not match."), [field])
        with write_session() as s:
            attempts.request_cancel(s, attempt_id=attempt_id, reason=reason, actor=who.actor)
    except QuadgateError as error:
        return cancel_page(request, who, attempt_id, reason, error)
    return flash.redirect(f"/attempts/{attempt_id}", "cancel_asked")


@router.get("/steps/{step_id}")
def form_page(request: Request, attempt_id: str, step_id: str, who: Signed) -> Response:
    """Show the form of a manual step."""
    return render_form(request, who, attempt_id, step_id)


def render_form(
    request: Request, who: Guest, attempt_id: str, step_id: str, entered: dict[str, str] | None = None, error: QuadgateError | None = None
) -> Response:
    """Render the form of a manual step, with what was entered and what is wrong with it beside each field."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
        kept = kept_uploads.kept(s, place=_place_of(step_id), actor=who.actor)
    step = next((step for step in data["steps"] if step["id"] == step_id and step["kind"] == "manual"), None)
    if step is None:
        raise NotFound("no_such_form", N_("This attempt has no form of that id."))
    wrong = getattr(error, "errors", ())
    return page(
        request,
        "form.html",
        error.status if error else 200,
        a=data,
        step=step,
        kept=kept,
        limits=PHOTO_LIMITS,
        name=views.attempt_name(data, who.locale),
        fields=fields_of(step["params"], who.locale, entered or {}, wrong),
        elsewhere=elsewhere(step["params"], wrong),
        marks=views.marks(data["engagement"], simulated=data["simulated"], rehearsal=data["rehearsal"]),
        **refusal(error, who),
    )


def _place_of(step_id: str) -> str:
    """Return where the photos of a form are kept while it is refused: a step belongs to one attempt."""
    return kept_uploads.place_of("form", step_id)


async def photos_of(form: Form) -> list[Upload]:
    """Return the photos of a form, read."""
    return await uploads(form, "photos")


@router.post("/steps/{step_id}")
def submit(request: Request, attempt_id: str, step_id: str, who: Signed, form: Form, photos: Annotated[list[Upload], Depends(photos_of)]) -> Response:
    """Hand the filled form in; what is wrong is shown field by field, and what was typed and uploaded is kept."""
    with read_session() as s:
        data = attempts.attempt_view(s, attempt_id=attempt_id, actor=who.actor)
    step = next((step for step in data["steps"] if step["id"] == step_id), None)
    if step is None:
        raise NotFound("no_such_form", N_("This attempt has no form of that id."))
    entered = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    place, ids = _place_of(step_id), named_in(form, "kept")
    try:
        with write_session() as s:
            files = [*kept_uploads.chosen(s, place=place, ids=ids, actor=who.actor), *photos]
            attempts.submit_form(s, step_id=step_id, form=read_form(step["params"], form), photos=files, actor=who.actor)
            kept_uploads.forget(s, place=place, actor=who.actor)
    except BadInput as error:
        with write_session() as s:
            kept_uploads.forget(s, place=place, actor=who.actor, but=ids)
            if data["may"]["form"]:  # the form waits, and for such a person
                kept_uploads.keep(s, place=place, files=photos, actor=who.actor)
        return render_form(request, who, attempt_id, step_id, entered, error)
    except QuadgateError as error:
        return render_form(request, who, attempt_id, step_id, entered, error)
    return flash.redirect(f"/attempts/{attempt_id}", "form_handed_in")
