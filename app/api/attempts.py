"""REST: one attempt, what it said, measured, was judged, and how it ends."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.paging import Cursor, Limit, decode_number, encode, link_next
from app.api.problems import locale_of
from app.api.schemas import AttemptView, CancelBody, EventPage, ExtendBody, ReportList, SamplePage, VerdictView
from app.api.strict import StrictRoute
from app.attempts import usecases as attempts
from app.kit.db import read_session, write_session
from app.kit.errors import NotFound
from app.kit.i18n import N_
from app.kit.words import in_words
from app.reports import usecases as reports
from app.web import files, stream

router = APIRouter(prefix="/attempts/{attempt_id}", tags=["attempts"], route_class=StrictRoute)
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.get("", summary="Read an attempt", response_model=AttemptView)
def read_attempt(attempt_id: str, actor: Caller) -> Response:
    """Read an attempt with its steps. Until the last run of G3 has ended, nothing here compares the arms."""
    with read_session() as s:
        return JSONResponse(attempts.attempt_view(s, attempt_id=attempt_id, actor=actor))


@router.get("/events", summary="What the playbooks said", response_model=EventPage)
def read_events(request: Request, attempt_id: str, actor: Caller, limit: Limit = 200, cursor: Cursor = None) -> Response:
    """List the events of all playbook runs, complete and redacted, oldest first."""
    after = decode_number("event", cursor)
    with read_session() as s:
        items = attempts.events(s, attempt_id=attempt_id, after=after, limit=limit, actor=actor)
    following = encode("event", items[-1]["id"]) if len(items) == limit else None
    return JSONResponse({"items": items, "next": following}, headers=link_next(request, following))


@router.get("/samples", summary="What the jobs measured", response_model=SamplePage)
def read_samples(request: Request, attempt_id: str, actor: Caller, limit: Limit = 200, cursor: Cursor = None) -> Response:
    """List the samples that were fetched so far, oldest first. The evidence bundle is the truth of a verdict, this is the live view.

    Of a soak they are a spread: at most 60 lines of a journal by poll, told by the gaps of `seq`. The bundle has them all.
    """
    after = decode_number("sample", cursor)
    with read_session() as s:
        items = attempts.samples(s, attempt_id=attempt_id, after=after, limit=limit, actor=actor)
    following = encode("sample", items[-1]["id"]) if len(items) == limit else None
    return JSONResponse({"items": items, "next": following}, headers=link_next(request, following))


@router.get(
    "/stream", summary="Follow an attempt (server-sent events)", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}}
)
def follow(request: Request, attempt_id: str, _actor: Caller) -> Response:
    """Follow an attempt live: events `log`, `samples`, `state`, `pulse`, `bye`. Send `Last-Event-ID` to go on after a break.

    `bye` with `ended` true: the attempt has ended. Else the stream may be opened again; with `reload` true its token or session holds no more.
    """
    return stream.respond(request, attempt_id, request.state.still, locale_of(request))


@router.get("/verdict", summary="The verdict", response_model=VerdictView)
def read_verdict(attempt_id: str, actor: Caller) -> Response:
    """Read verdict.json as judged. 404 with a sentence while there is none. While an extension runs it is the verdict before it."""
    with read_session() as s:
        view = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)
    if view["document"] is None:
        raise NotFound("no_verdict_yet", N_("This attempt has no verdict; its run status is {status}."), status=in_words("status", view["status"]))
    told = view["document"]
    body = {"verdict": told["verdict"], "because": told.get("because") or [], "hash": view["verdict_hash"], "document": told}
    body["extension"] = view["extension"]
    return JSONResponse(body, headers={"ETag": f'"{view["verdict_hash"]}"'})


@router.get("/evidence", summary="The evidence bundle", response_class=Response, responses={200: {"content": {"application/zip": {}}}})
def read_evidence(attempt_id: str, actor: Caller) -> Response:
    """Download the evidence bundle (zip). `quadgate judge BUNDLE` recomputes the verdict from it, offline."""
    return files.bundle(attempt_id, actor)


@router.get("/reports", summary="The reports", response_model=ReportList)
def read_reports(attempt_id: str, actor: Caller) -> Response:
    """List the reports that were made of this attempt."""
    with read_session() as s:
        view = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)
    return JSONResponse({"items": [report | {"href": f"/api/v1/reports/{report['id']}.pdf"} for report in view["reports"]]})


@router.post("/reports", summary="Print the report again", response_model=ReportList)
def print_again(request: Request, attempt_id: str, actor: Caller, _key: Key = None) -> Response:
    """Print the report in both languages with what was recorded since: approvals, the register. The same facts give the same report."""

    def work(s: Session) -> Answer:
        items = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)["reports"]
        return Answer(200, {"items": [report | {"href": f"/api/v1/reports/{report['id']}.pdf"} for report in items]})

    return once(request, actor, b"", work, first=lambda: reports.print_again(write_session, attempt_id=attempt_id, actor=actor))


@router.post("/cancel", summary="Cancel an attempt", status_code=202, response_model=AttemptView)
def cancel(request: Request, attempt_id: str, body: CancelBody, actor: Caller, _key: Key = None) -> Response:
    """Ask the engine to cancel. A canceled attempt that has measured stays counted, and is never a pass."""

    def work(s: Session) -> Answer:
        attempts.request_cancel(s, attempt_id=attempt_id, reason=body.reason, actor=actor)
        s.flush()
        return Answer(202, attempts.attempt_view(s, attempt_id=attempt_id, actor=actor))

    return once(request, actor, body.model_dump_json().encode(), work)


@router.post("/extend", summary="Extend an inconclusive attempt", status_code=202, response_model=AttemptView)
def extend(request: Request, attempt_id: str, actor: Caller, body: ExtendBody | None = None, _key: Key = None) -> Response:
    """Add the planned run pairs to an inconclusive attempt at G3, once. All runs are judged together; it uses up no attempt."""
    given = body or ExtendBody()

    def work(s: Session) -> Answer:
        attempts.extend(s, attempt_id=attempt_id, said=given.said, actor=actor)
        s.flush()
        return Answer(202, attempts.attempt_view(s, attempt_id=attempt_id, actor=actor))

    return once(request, actor, given.model_dump_json().encode(), work)


@router.post("/retry", summary="Try the failed step again", status_code=202, response_model=AttemptView)
def retry(request: Request, attempt_id: str, actor: Caller, _key: Key = None) -> Response:
    """Let the failed step of an attempt in error be tried again. A verdict is never retried."""

    def work(s: Session) -> Answer:
        attempts.retry(s, attempt_id=attempt_id, actor=actor)
        s.flush()
        return Answer(202, attempts.attempt_view(s, attempt_id=attempt_id, actor=actor))

    return once(request, actor, b"", work)
