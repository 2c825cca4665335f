"""REST: the packing list of an engagement and its revisions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.schemas_packing import PackingBody, PackingView
from app.api.strict import StrictRoute
from app.kit.db import read_session
from app.packing import usecases as packing

router = APIRouter(tags=["engagements"], route_class=StrictRoute)
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.get("/engagements/{engagement_id}/packing-list", summary="Packing list and its revisions", response_model=PackingView)
def read_packing(engagement_id: str, actor: Caller) -> Response:
    """Read the packing list in force, what it lacks of the order, and every revision with its approvals, the newest first."""
    with read_session() as s:
        return JSONResponse(packing.packing(s, engagement_id=engagement_id, actor=actor))


@router.post("/engagements/{engagement_id}/packing-list", summary="Propose a packing list", status_code=201, response_model=PackingView)
def propose(request: Request, engagement_id: str, body: PackingBody, actor: Caller, _key: Key = None) -> Response:
    """Propose a whole new packing list. A person of each party approves it (`POST /approvals`, kind `packing`) before it is in force."""

    def work(s: Session) -> Answer:
        packing.propose(s, engagement_id=engagement_id, entries=body.packing_list, reason=body.reason, actor=actor)
        address = {"Location": f"/api/v1/engagements/{engagement_id}/packing-list"}
        return Answer(201, packing.packing(s, engagement_id=engagement_id, actor=actor), address)

    return once(request, actor, body.model_dump_json().encode(), work)
