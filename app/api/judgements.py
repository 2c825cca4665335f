"""REST: the judgements of an attempt, and the causes of the events that broke a soak."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.schemas import CauseBody, CauseList, JudgeBody, JudgementList, WhatIf
from app.api.strict import StrictRoute
from app.attempts import usecases as attempts
from app.attempts.judging import judge_again
from app.attempts.whatif import what_if
from app.kit.db import read_session, write_session
from app.plans.revise import read_differences

router = APIRouter(prefix="/attempts/{attempt_id}", tags=["attempts"], route_class=StrictRoute)
PLAN_SAYS = "Differences from the attempt's plan, as YAML, e.g. `{g3: {agreement_max: 0.03}}`. Absent: what this judge alone answers otherwise."
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.get("/judgements", summary="Every judgement of an attempt", response_model=JudgementList)
def read_judgements(attempt_id: str, actor: Caller) -> Response:
    """List the judgements, the oldest first, each with the checks that it changed. The newest holds; none is ever replaced."""
    with read_session() as s:
        view = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)
    return JSONResponse({"items": view["revisions"]})


@router.post("/judgements", summary="Judge an attempt again", status_code=201, response_model=JudgementList)
def judge(request: Request, attempt_id: str, actor: Caller, body: JudgeBody | None = None, _key: Key = None) -> Response:
    """Judge again from the stored evidence and what is known now (approved causes, the G2 baseline): a further judgement, and a new report.

    409 while the attempt goes on. What was signed or consented to holds on only where the new judgement answers every check the same.
    """
    told = body or JudgeBody()

    def work(s: Session) -> Answer:
        return Answer(201, {"items": attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)["revisions"]})

    def judged() -> object:
        return judge_again(write_session, attempt_id=attempt_id, why=told.why, actor=actor)

    return once(request, actor, told.model_dump_json().encode(), work, first=judged)


@router.get("/whatif", summary="What if", response_model=WhatIf)
def look(attempt_id: str, actor: Caller, plan: Annotated[str | None, Query(max_length=16_384, description=PLAN_SAYS)] = None) -> Response:
    """Look at the judged evidence under another plan, or, without one, by this judge alone. It is no verdict: nothing is kept, nothing follows.

    409 while the attempt has no verdict; of an extended attempt only the runs that were judged are looked at.
    """
    differences = read_differences(plan) if plan and plan.strip() else None
    with read_session() as s:
        return JSONResponse(what_if(s, attempt_id=attempt_id, differences=differences, actor=actor))


@router.get("/causes", summary="What broke a soak, and why", response_model=CauseList)
def read_causes(attempt_id: str, actor: Caller) -> Response:
    """List the events that broke the run (host reboots, gaps, counter resets, outages) with the causes that were recorded."""
    with read_session() as s:
        view = attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)
    return JSONResponse({"items": view["causes"]})


@router.post("/causes", summary="Record the cause of an event", status_code=201, response_model=CauseList)
def claim_cause(request: Request, attempt_id: str, body: CauseBody, actor: Caller, _key: Key = None) -> Response:
    """Record the cause of one event. When both parties have approved it (`soak_cause`), the attempt is judged again at once."""

    def work(s: Session) -> Answer:
        attempts.claim_cause(s, attempt_id=attempt_id, event=body.event, kind=body.kind, text=body.text, actor=actor)
        return Answer(201, {"items": attempts.attempt_view(s, attempt_id=attempt_id, actor=actor)["causes"]})

    return once(request, actor, body.model_dump_json().encode(), work)
