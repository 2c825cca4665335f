"""REST: wipes of units on loan. They are begun by the command line alone, when both parties have approved."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.schemas_wipes import WipeBody, WipeList, WipeView, WithdrawBody
from app.api.strict import StrictRoute
from app.kit.db import read_session
from app.web import files
from app.wipes import usecases as wipes

router = APIRouter(tags=["wipes"], route_class=StrictRoute)
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.get("/engagements/{engagement_id}/wipes", summary="Wipes of drives", response_model=WipeList)
def list_wipes(engagement_id: str, actor: Caller) -> Response:
    """List the wipe orders of an engagement, the newest first, and the drives that can be ordered."""
    with read_session() as s:
        return JSONResponse(wipes.wipes(s, engagement_id=engagement_id, actor=actor))


@router.post("/engagements/{engagement_id}/wipes", summary="Order a wipe", status_code=201, response_model=WipeView)
def order(request: Request, engagement_id: str, body: WipeBody, actor: Caller, _key: Key = None) -> Response:
    """Order a wipe of drives by serial number. A person of each party approves it (`POST /approvals`, kind `wipe`) before it can begin."""

    def work(s: Session) -> Answer:
        made = wipes.order_wipe(s, engagement_id=engagement_id, actor=actor, **body.model_dump())
        return Answer(201, wipes.wipe_seen(s, wipe_id=made.id, actor=actor), {"Location": f"/api/v1/wipes/{made.id}"})

    return once(request, actor, body.model_dump_json().encode(), work)


@router.get("/wipes/{wipe_id}", summary="Read a wipe", response_model=WipeView)
def read_wipe(wipe_id: str, actor: Caller) -> Response:
    """Read one order with its approvals, and with the record of each drive once it was carried out."""
    with read_session() as s:
        return JSONResponse(wipes.wipe_seen(s, wipe_id=wipe_id, actor=actor))


@router.post("/wipes/{wipe_id}/withdraw", summary="Withdraw a wipe", response_model=WipeView)
def withdraw(request: Request, wipe_id: str, body: WithdrawBody, actor: Caller, _key: Key = None) -> Response:
    """Withdraw an order, approved or not, that was not begun."""

    def work(s: Session) -> Answer:
        wipes.withdraw_wipe(s, wipe_id=wipe_id, reason=body.reason, actor=actor)
        return Answer(200, wipes.wipe_seen(s, wipe_id=wipe_id, actor=actor))

    return once(request, actor, body.model_dump_json().encode(), work)


@router.get(
    "/wipes/files/{file_id}",
    summary="A file of a wipe",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def read_file(file_id: str, actor: Caller) -> Response:
    """Download a record, a journal or a return slip, byte for byte as the target wrote it."""
    return files.of_wipe(file_id, actor)
