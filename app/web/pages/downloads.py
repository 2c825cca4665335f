"""Files: reports, evidence bundles, logs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

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
