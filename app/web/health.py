"""Health and numbers over HTTP. They are for the machine and its operators: the proxy of docker-compose.yml hands neither on."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from app.ops import health
from app.ops import metrics as numbers

router = APIRouter()


@router.get("/healthz")
def alive() -> Response:
    """Tell that the process answers."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz")
def ready() -> Response:
    """Tell whether work gets done: 200, or 503 with what is missing."""
    found = health.look()
    return JSONResponse(found.json(), 200 if found.ready else 503)


@router.get("/metrics")
def metrics() -> Response:
    """Return all numbers for Prometheus. They name gates, statuses and nodes, never a customer."""
    return Response(numbers.text(), media_type=CONTENT_TYPE_LATEST)
