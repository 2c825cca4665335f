"""Health: alive means that the process answers; ready means that the database answers and that a canary task came back."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import JSONResponse, Response

from app.engine.models import Canary
from app.kit.clock import stamp
from app.kit.db import database_now, read_session

router = APIRouter()
FRESH = timedelta(seconds=90)


@router.get("/healthz")
def alive() -> Response:
    """Tell that the process answers."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz")
def ready() -> Response:
    """Tell whether work gets done: 200, or 503 with what is missing."""
    try:
        with read_session() as s:
            at = database_now(s)
            returned = s.scalar(select(Canary.returned_at).order_by(Canary.returned_at.desc().nulls_last()).limit(1))
    except SQLAlchemyError:
        return JSONResponse({"status": "not ready", "database": "does not answer", "worker": "unknown"}, 503)
    fresh = returned is not None and at - returned <= FRESH
    body = {
        "status": "ready" if fresh else "not ready",
        "database": "answers",
        "worker": "a canary task came back" if fresh else "no canary task came back lately",
    }
    return JSONResponse(body | {"canary_returned_at": stamp(returned)}, 200 if fresh else 503)
