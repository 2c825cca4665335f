"""The board, an engagement, its plan, and a new one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData, UploadFile
from starlette.responses import RedirectResponse, Response

from app.accounts import usecases as accounts
from app.approvals import usecases as approvals
from app.attempts import usecases as attempts
from app.engagements import usecases as engagements
from app.engine import removal
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, NotFound, QuadgateError
from app.kit.i18n import N_
from app.plans.odds import odds
from app.plans.revise import unsealed_changes
from app.plans.usecases import canonical_of
from app.web import files, views
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, text_of
from app.web.starter import starter
from app.wipes.views import brief

router = APIRouter()
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]
MOST_BYTES = 1024 * 1024


@router.get("/")
def board(request: Request, who: Signed) -> Response:
    """Show all engagements that this person may see."""
    with read_session() as s:
        items = [views.engagement_card(item) for item in engagements.board(s, actor=who.actor)]
        inbox = waiting_for(s, who)
    return page(request, "board.html", items=items, inbox=inbox)


@router.get("/engagements/new")
def new_engagement(request: Request, who: Signed) -> Response:
    """Show the form for an engagement file."""
    with read_session() as s:
        inbox = waiting_for(s, who)
    return page(request, "new_engagement.html", text=starter(who.locale), sentence="", errors=(), code="", warned=None, inbox=inbox)


async def engagement_file(form: Form) -> bytes:
    """Return the engagement file: the chosen one, else the text of the field."""
    upload = form.get("file")
    if isinstance(upload, UploadFile) and upload.filename:
        return await upload.read(MOST_BYTES + 1)
    return text_of(form, "text").encode("utf-8", "replace")


async def seen_warning(form: Form) -> str:
    """Return the warning that the person has read and sends along, as the form showed it; empty where none was shown."""
    return text_of(form, "seen")


@router.post("/engagements")
def create_engagement(
    request: Request, who: Signed, given: Annotated[bytes, Depends(engagement_file)], seen: Annotated[str, Depends(seen_warning)]
) -> Response:
    """Create an engagement from its file; what is wrong is said field by field, with the text kept.

    What one should know before is said first: then the form comes back, and is to be sent once more with that warning as seen.
    """
    try:
        text = _decoded(given)
        warned = engagements.warning_of(text, who.actor)
        if warned and warned.en != seen:
            return page(request, "new_engagement.html", text=text, sentence="", errors=(), code="", warned=warned.json(), seen=warned.en)
        with write_session() as s:
            made = engagements.create_engagement(s, text=text, actor=who.actor)
    except QuadgateError as error:
        return page(
            request,
            "new_engagement.html",
            error.status,
            text=given.decode("utf-8", "replace"),
            sentence=error.text(who.locale),
            errors=getattr(error, "errors", ()),
            code=error.code,
            warned=None,
        )
    return RedirectResponse(f"/engagements/{made.id}", 303)


def _decoded(given: bytes) -> str:
    """Return the text of a file. It is never guessed at: a name in another encoding would be sealed and printed as something else."""
    if len(given) > MOST_BYTES:
        raise BadInput("too_long", N_("The engagement file is longer than 1 MiB."))
    try:
        return given.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("not_utf8", N_("The engagement file is not UTF-8 text.")) from None


@router.get("/engagements/{engagement_id}")
def engagement(request: Request, engagement_id: str, who: Signed) -> Response:
    """Show one engagement with its next action."""
    return engagement_page(request, who, engagement_id)


def engagement_page(request: Request, who: Guest, engagement_id: str, error: QuadgateError | None = None) -> Response:
    """Render an engagement; an action that was refused is shown with its sentence, on the same page."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
        pending = approvals.pending(s, actor=who.actor)
        removed, wiped = removal.latest(s, engagement_id), brief(s, engagement_id)
        absent = accounts.without_account(s, {person["login"] for people in data["people"].values() for person in people})
    return page(
        request,
        "engagement.html",
        error.status if error else 200,
        e=views.engagement_card(data),
        next=views.next_step(data, pending, who.locale),
        absent=absent,
        removed=removed,
        wiped=wiped,
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=sum(bool(p["mine"]) for p in pending),
        **refusal(error, who),
    )


@router.get("/engagements/{engagement_id}/plan")
def plan(request: Request, engagement_id: str, who: Signed) -> Response:
    """Show the limits as sealed, the hash, the calendar."""
    from gates.declarations import not_asked
    from gates.plan import load_plan
    from gates.rules.standing import counters_left_out, not_tested  # brings numpy: only who shows a plan pays for it

    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
        waiting = unsealed_changes(s, engagement_id=engagement_id, actor=who.actor)
        chances = odds(s, engagement_id=engagement_id, actor=who.actor)
        inbox = waiting_for(s, who)
    sealed = load_plan(data["plan"]["data"])
    return page(
        request,
        "plan.html",
        e=data,
        seen=waiting,
        rows=views.plan_changes(waiting.changes, who.locale) if waiting else [],
        odds=chances,
        plan=data["plan"]["data"],
        left_out=(*not_tested(sealed), *counters_left_out(sealed)),
        not_asked=tuple(not_asked(sealed)),
        thresholds=views.thresholds(data["plan"]["data"], who.locale),
        beside=views.sealed_beside(data["plan"]["data"], who.locale),
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=inbox,
    )


@router.get("/engagements/{engagement_id}/plan/{revision}.json")
def canonical(engagement_id: str, revision: int, who: Signed) -> Response:
    """Return the canonical JSON of a revision of the plan: the very bytes whose SHA-256 both parties approve."""
    with read_session() as s:
        name, text = canonical_of(s, engagement_id=engagement_id, number=revision, actor=who.actor)
    return files.attachment(text.encode(), name, "application/json")


@router.post("/engagements/{engagement_id}/gates/{gate}/attempts")
def start(request: Request, engagement_id: str, gate: str, who: Signed, _form: Form) -> Response:
    """Start an attempt."""
    return _start(request, who, engagement_id, gate, rehearsal=False)


@router.post("/engagements/{engagement_id}/rehearsals")
def rehearse(request: Request, engagement_id: str, who: Signed, form: Form) -> Response:
    """Start a rehearsal."""
    return _start(request, who, engagement_id, text_of(form, "gate"), rehearsal=True)


@router.get("/engagements/{engagement_id}/scans/{sha256}")
def scan(engagement_id: str, sha256: str, who: Signed) -> Response:
    """Return the scan of a signed report that an approval of this engagement is linked to."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=who.actor)
    if not any(given["scan_sha256"] == sha256 for given in data["approvals"]):
        raise NotFound("no_such_scan", N_("No approval of this engagement carries a scan with that hash."))
    return files.scan(sha256)


def _start(request: Request, who: Guest, engagement_id: str, gate: str, *, rehearsal: bool) -> Response:
    try:
        with write_session() as s:
            attempt = attempts.start_attempt(s, engagement_id=engagement_id, gate=gate, rehearsal=rehearsal, actor=who.actor)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return engagement_page(request, who, engagement_id, error)
    return RedirectResponse(f"/attempts/{attempt.id}", 303)


def waiting_for(s: Session, who: Guest) -> int:
    """Return how many decisions wait for this person."""
    return sum(bool(item["mine"]) for item in approvals.pending(s, actor=who.actor))


def refusal(error: QuadgateError | None, who: Guest) -> dict[str, Any]:
    """Return what a page says about something that was not done."""
    if error is None:
        return {"sentence": "", "errors": (), "code": ""}
    return {"sentence": error.text(who.locale), "errors": getattr(error, "errors", ()), "code": error.code}
