"""Files: reports, evidence bundles, logs, scans."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from app.approvals import usecases as approvals
from app.kit.db import read_session
from app.web import files
from app.web.security import Guest, signed_in

router = APIRouter()
Signed = Annotated[Guest, Depends(signed_in)]


@router.get("/reports/{report_id}.pdf")
def report(report_id: str, who: Signed) -> Response:
    """Return the PDF of a report."""
    return files.report(report_id, who.actor)


@router.get("/attempts/{attempt_id}/bundle.zip")
def bundle(attempt_id: str, who: Signed) -> Response:
    """Return the evidence bundle of an attempt."""
    return files.bundle(attempt_id, who.actor)


@router.get("/attempts/{attempt_id}/log.txt")
def log(attempt_id: str, who: Signed) -> Response:
    """Return everything that the playbooks of an attempt said."""
    return files.log_text(attempt_id, who.actor)


@router.get("/approvals/{approval_id}/scan")
def scan(approval_id: str, who: Signed) -> Response:
    """Return the scan of a signed report."""
    with read_session() as s:
        data = approvals.scan(s, approval_id=approval_id, actor=who.actor)
    kind, media = (
        ("pdf", "application/pdf") if data.startswith(b"%PDF-") else ("png", "image/png") if data.startswith(b"\x89PNG") else ("jpg", "image/jpeg")
    )
    return files.attachment(data, f"scan-{approval_id}.{kind}", media)
