"""The sign-off inbox and one decision."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.responses import Response

from app.approvals import usecases as approvals
from app.attempts import usecases as attempts
from app.engagements import usecases as engagements
from app.evidence import uploads as kept_uploads
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput, NotFound, QuadgateError
from app.kit.i18n import N_
from app.plans.odds import odds
from app.web import flash, views
from app.web.forms import Upload, named_in, uploads
from app.web.pages.board import refusal
from app.web.render import page
from app.web.security import Guest, checked_form, signed_in, text_of

router = APIRouter(prefix="/sign-off")
Signed = Annotated[Guest, Depends(signed_in)]
Form = Annotated[FormData, Depends(checked_form)]


@router.get("")
def inbox(request: Request, who: Signed) -> Response:
    """Show what waits for a decision."""
    with read_session() as s:
        items = approvals.pending(s, actor=who.actor)
    return page(request, "sign_off.html", items=items, inbox=sum(bool(item["mine"]) for item in items))


@router.get("/{kind}/{object_id}")
def look(request: Request, kind: str, object_id: str, who: Signed) -> Response:
    """Show one object to decide on: its verdict, its hash, its papers."""
    return decide_page(request, who, kind, object_id)


def decide_page(request: Request, who: Guest, kind: str, object_id: str, comment: str = "", error: QuadgateError | None = None) -> Response:
    """Render the decision."""
    with read_session() as s:
        items = approvals.pending(s, actor=who.actor)
        found = next((item for item in items if (item["object_kind"], item["object_id"]) == (kind, object_id)), None)
        if found is None:
            raise NotFound("nothing_to_decide", N_("Nothing of this kind waits for a decision any more, or it is not for you."))
        attempt = attempts.attempt_view(s, attempt_id=found["attempt_id"], actor=who.actor) if found["attempt_id"] else None
        data = engagements.overview(s, engagement_id=found["engagement_id"], actor=who.actor)
        kept = kept_uploads.kept(s, place=_place_of(kind, object_id, found["object_hash"]), actor=who.actor)
        chances = odds(s, engagement_id=found["engagement_id"], actor=who.actor) if kind == "plan" else None
    return page(
        request,
        "decide.html",
        error.status if error else 200,
        p=found,
        odds=chances,
        document=attempt["document"] if attempt else None,
        manifest_hash=attempt["manifest_hash"] if attempt else "",
        reports=views.editions(attempt["reports"], who.locale) if attempt else [],
        comment=comment,
        kept=kept,
        marks=views.marks(data, simulated=data["simulated"]),
        inbox=sum(bool(item["mine"]) for item in items),
        **refusal(error, who),
    )


def _place_of(kind: str, object_id: str, object_hash: str) -> str:
    """Return where a scan is kept while its decision is refused: for the very report that it is a scan of."""
    return kept_uploads.place_of(kind, object_id, object_hash)


def _open_to(s: Session, who: Guest, object_id: str, object_hash: str) -> bool:
    """Tell whether a sign-off of that very report waits for this person: from anybody else no scan is kept."""
    waiting = approvals.pending(s, actor=who.actor)
    return any(
        (item["mine"] or item["rejected_by_me"])
        and (item["object_kind"], item["object_id"], item["object_hash"]) == ("sign_off", object_id, object_hash)
        for item in waiting
    )


async def scans_of(form: Form) -> list[Upload]:
    """Return the scan of the signed report, if one was sent."""
    return await uploads(form, "scan")


@router.post("/{kind}/{object_id}")
def decide(request: Request, kind: str, object_id: str, who: Signed, form: Form, scans: Annotated[list[Upload], Depends(scans_of)]) -> Response:
    """Record a decision for the very hash that was looked at."""
    place, ids = _place_of(kind, object_id, text_of(form, "object_hash")), named_in(form, "kept")
    try:
        with write_session() as s:
            given = scans or kept_uploads.chosen(s, place=place, ids=ids, actor=who.actor)
            name, data = given[0] if given else ("", None)
            approvals.approve(
                s,
                object_kind=kind,
                object_id=object_id,
                object_hash=text_of(form, "object_hash"),
                decision=text_of(form, "decision"),
                comment=text_of(form, "comment"),
                actor=who.actor,
                scan=data,
                scan_name=name,
            )
            kept_uploads.forget(s, place=place, actor=who.actor)
    except BadInput as error:
        with write_session() as s:
            kept_uploads.forget(s, place=place, actor=who.actor, but=() if scans else ids)
            if kind == "sign_off" and _open_to(s, who, object_id, text_of(form, "object_hash")):
                kept_uploads.keep(s, place=place, files=scans, actor=who.actor, most=1)
        return decide_page(request, who, kind, object_id, text_of(form, "comment"), error)
    except QuadgateError as error:
        if error.status == 404:
            raise
        return decide_page(request, who, kind, object_id, text_of(form, "comment"), error)
    return flash.redirect("/sign-off", text_of(form, "decision"))
