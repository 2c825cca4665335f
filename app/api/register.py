"""REST: the register of deviations, waivers and punch items."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.schemas import CloseBody, DeviationBody, DeviationList, DeviationView
from app.api.strict import StrictRoute
from app.deviations import usecases as deviations
from app.kit.db import read_session

router = APIRouter(tags=["register"], route_class=StrictRoute)
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.get("/engagements/{engagement_id}/deviations", summary="Deviations, waivers, punch items", response_model=DeviationList)
def list_deviations(engagement_id: str, actor: Caller) -> Response:
    """List the register of an engagement, what is not closed first."""
    with read_session() as s:
        return JSONResponse({"items": deviations.deviations(s, engagement_id=engagement_id, actor=actor)})


@router.post("/engagements/{engagement_id}/deviations", summary="Record an entry", status_code=201, response_model=DeviationView)
def record(request: Request, engagement_id: str, body: DeviationBody, actor: Caller, _key: Key = None) -> Response:
    """Record a deviation, a waiver or a punch item. A waiver is granted by approvals of both parties (`POST /approvals`, kind `waiver`)."""

    def work(s: Session) -> Answer:
        made = deviations.record_deviation(s, engagement_id=engagement_id, actor=actor, **body.model_dump())
        return Answer(201, deviations.deviation_seen(s, deviation_id=made.id, actor=actor), {"Location": f"/api/v1/deviations/{made.id}"})

    return once(request, actor, body.model_dump_json().encode(), work)


@router.get("/deviations/{deviation_id}", summary="Read an entry", response_model=DeviationView)
def read_deviation(deviation_id: str, actor: Caller) -> Response:
    """Read one entry with its approvals."""
    with read_session() as s:
        return JSONResponse(deviations.deviation_seen(s, deviation_id=deviation_id, actor=actor))


@router.post("/deviations/{deviation_id}/close", summary="Close an entry", response_model=DeviationView)
def close(request: Request, deviation_id: str, body: CloseBody, actor: Caller, _key: Key = None) -> Response:
    """Close an entry: say what was done. It stays in the register and in the reports."""

    def work(s: Session) -> Answer:
        deviations.close_deviation(s, deviation_id=deviation_id, closing=body.closing, actor=actor)
        return Answer(200, deviations.deviation_seen(s, deviation_id=deviation_id, actor=actor))

    return once(request, actor, body.model_dump_json().encode(), work)
