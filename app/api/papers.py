"""REST: approvals and reports."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Header, Request
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.auth import Caller
from app.api.idempotency import Answer, once
from app.api.schemas import ApprovalBody, ApprovalView, PendingList
from app.api.strict import StrictRoute
from app.approvals import usecases as approvals
from app.kit.clock import stamp
from app.kit.db import read_session
from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_
from app.web import files

router = APIRouter(route_class=StrictRoute)
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.get("/approvals", summary="What waits for a decision", response_model=PendingList, tags=["approvals"])
def list_pending(actor: Caller) -> Response:
    """List what waits for a decision, and whether it waits for you."""
    with read_session() as s:
        return JSONResponse({"items": approvals.pending(s, actor=actor)})


@router.post("/approvals", summary="Record a decision", status_code=201, response_model=ApprovalView, tags=["approvals"])
def approve(request: Request, body: ApprovalBody, actor: Caller, _key: Key = None) -> Response:
    """Record the decision of a person who is signed in. A token is refused: it carries no intent of a signatory."""
    scan = _decoded(body.scan)

    def work(s: Session) -> Answer:
        made = approvals.approve(
            s,
            object_kind=body.object_kind,
            object_id=body.object_id,
            object_hash=body.object_hash,
            decision=body.decision,
            comment=body.comment,
            actor=actor,
            scan=scan,
            scan_name=body.scan_name,
        )
        names = ("id", "engagement_id", "object_kind", "object_id", "object_hash", "party", "person", "role", "decision", "comment", "scan_sha256")
        return Answer(201, {name: getattr(made, name) for name in names} | {"at": stamp(made.at)})

    return once(request, actor, body.model_dump_json().encode(), work)


def _decoded(text: str | None) -> bytes | None:
    if not text:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        field = FieldProblem("/scan", N_("This is not base64."))
        raise BadInput("bad_scan", N_("The scan cannot be read."), [field]) from None


@router.get(
    "/reports/{report_id}.pdf",
    summary="A report as PDF",
    response_class=Response,
    responses={200: {"content": {"application/pdf": {}}}},
    tags=["reports"],
)
def read_report(report_id: str, actor: Caller) -> Response:
    """Download a report: PDF/A with its data attached."""
    return files.report(report_id, actor)
