"""REST: engagements, their plan, and the start of a gate."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.accounts.actor import Actor
from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.paging import Cursor, Limit, decode, encode, link_next
from app.api.problems import Precondition, UnsupportedMedia, media_type
from app.api.schemas import AttemptView, EngagementItem, EngagementPage, PlanBody, PlanView, StartBody
from app.api.strict import StrictRoute
from app.attempts import usecases as attempts
from app.engagements import usecases as engagements
from app.kit.db import read_session
from app.kit.errors import BadInput, Conflict
from app.kit.i18n import N_
from app.plans import usecases as plans
from app.plans.odds import odds

router = APIRouter(prefix="/engagements", tags=["engagements"], route_class=StrictRoute)
IfMatch = Annotated[str | None, Header(alias="If-Match", description="The ETag of the engagement as it was read.")]
Key = Annotated[str | None, Header(alias="Idempotency-Key", description="A text of your own, 8 to 120 characters, new for each thing to do.")]
TYPES = ("application/json", "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
FILE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/yaml": {"schema": {"type": "string"}, "example": "engagement:\n  code: ACME-2026-01\n  customer: ...\n"},
            "application/json": {
                "schema": {"type": "object"},
                "example": {"engagement": {"code": "ACME-2026-01"}, "order": {}, "packing_list": [], "targets": {}, "plan": {}},
            },
        },
    }
}


def etag(data: dict[str, Any]) -> str:
    """Return the strong ETag of an engagement: its version moves with every change."""
    return f'"{data["id"]}.{data["version"]}"'


async def file_body(request: Request) -> bytes:
    """Return the engagement file of a request: YAML, or JSON, which is YAML too."""
    if media_type(request) not in TYPES:
        raise UnsupportedMedia(request, (TYPES[1], TYPES[0]))
    return await request.body()


@router.get("", summary="List engagements", response_model=EngagementPage)
def list_engagements(request: Request, actor: Caller, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """List the engagements that you may see, in the order of the board."""
    after = decode("engagement", cursor)
    with read_session() as s:
        items = engagements.board(s, actor=actor)
    ids = [item["id"] for item in items]
    start = ids.index(after) + 1 if after in ids else 0
    found = items[start : start + limit]
    following = encode("engagement", found[-1]["id"]) if start + limit < len(items) else None
    return JSONResponse({"items": found, "next": following}, headers=link_next(request, following))


@router.post("", summary="Create an engagement from its file", status_code=201, response_model=EngagementItem, openapi_extra=FILE_BODY)
def create_engagement(request: Request, actor: Caller, payload: Annotated[bytes, Depends(file_body)], _key: Key = None) -> Response:
    """Create an engagement. Each problem of the file is one entry of `errors`, with the field it is about."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput("not_utf8", N_("The engagement file is not UTF-8 text.")) from None

    def work(s: Session) -> Answer:
        made = engagements.create_engagement(s, text=text, actor=actor)
        return _engagement(s, made.id, actor, 201)

    return once(request, actor, payload, work)


@router.get("/{engagement_id}", summary="Read an engagement", response_model=EngagementItem)
def read_engagement(request: Request, engagement_id: str, actor: Caller) -> Response:
    """Read an engagement with its gates, plan, attempts and approvals. `If-None-Match` is honoured."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=actor)
    tag = etag(data)
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return JSONResponse(data, headers={"ETag": tag})


@router.get("/{engagement_id}/plan", summary="Read the plan and its odds", response_model=PlanView)
def read_plan(engagement_id: str, actor: Caller) -> Response:
    """Read the newest revision of the plan, who approved it, and the chances of the main gate under it with what to know before sealing."""
    with read_session() as s:
        data = engagements.overview(s, engagement_id=engagement_id, actor=actor)
        found = odds(s, engagement_id=engagement_id, actor=actor)
    return JSONResponse({**data["plan"], "odds": found})


@router.post("/{engagement_id}/plan", summary="Revise the plan", status_code=201, response_model=EngagementItem)
def revise_plan(request: Request, engagement_id: str, body: PlanBody, actor: Caller, if_match: IfMatch = None, _key: Key = None) -> Response:
    """Make a new revision of the plan out of differences; both parties must seal it anew. Needs `If-Match`."""
    if if_match is None:
        raise Precondition(
            "if_match_missing",
            N_("A change needs the header If-Match with the ETag of the engagement as you read it, so that nobody's change is overwritten."),
        )

    def work(s: Session) -> Answer:
        match(s, engagement_id, actor, if_match)
        plans.add_revision(s, engagement_id=engagement_id, differences=body.differences, actor=actor)
        return _engagement(s, engagement_id, actor, 201)

    return once(request, actor, body.model_dump_json().encode(), work)


@router.post("/{engagement_id}/gates/{gate}/attempts", summary="Start a gate", status_code=201, response_model=AttemptView, tags=["attempts"])
def start_attempt(
    request: Request, engagement_id: str, gate: str, actor: Caller, body: StartBody | None = None, if_match: IfMatch = None, _key: Key = None
) -> Response:
    """Start an attempt or a rehearsal at a gate. Needs an `Idempotency-Key`, so that a repeated request starts nothing twice.

    Refused with 409 and the reason when the order of the gates, the plan, a stop or a running attempt forbids it.
    """
    wanted = body or StartBody()

    def work(s: Session) -> Answer:
        match(s, engagement_id, actor, if_match)
        made = attempts.start_attempt(s, engagement_id=engagement_id, gate=gate, rehearsal=wanted.rehearsal, actor=actor)
        s.flush()
        view = attempts.attempt_view(s, attempt_id=made.id, actor=actor)
        return Answer(201, view, {"Location": f"/api/v1/attempts/{made.id}"})

    return once(request, actor, wanted.model_dump_json().encode(), work, required=True)


def match(s: Session, engagement_id: str, actor: Actor, if_match: str | None) -> None:
    """Raise Conflict when the engagement is no longer the one that the caller looked at."""
    if if_match is None or if_match.strip() == "*":
        return
    present = etag(engagements.overview(s, engagement_id=engagement_id, actor=actor))
    if present not in {tag.strip() for tag in if_match.split(",")}:
        raise Conflict("changed_since", N_("The engagement changed since you read it (now {etag}). Read it again and decide anew."), etag=present)


def _engagement(s: Session, engagement_id: str, actor: Actor, status: int) -> Answer:
    s.flush()
    data = engagements.overview(s, engagement_id=engagement_id, actor=actor)
    return Answer(status, data, {"Location": f"/api/v1/engagements/{engagement_id}", "ETag": etag(data)})
