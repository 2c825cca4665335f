"""The REST API, version 1: one application of its own, so that every error in it is a problem document."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from app.api import attempts, engagements, judgements, packing, papers, problems, register, wipes
from app.api.codes import codes, unfilled
from app.api.schemas import Problem
from app.web.render import page

VERSION = "1.0.0"
DESCRIPTION = """Create an engagement, start a gate, follow it, fetch verdict, evidence and report.

Every error is `application/problem+json` with a stable `code`, a sentence in the language of `Accept-Language`, and the `request_id`.
Lists are paged by cursor and `Link`. A POST takes an `Idempotency-Key`: the same key and body give the first answer again."""
STATUSES = (400, 401, 403, 404, 405, 409, 412, 413, 415, 422, 428, 500, 503)
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": "Problem", "content": {problems.MEDIA_TYPE: {}}}
    for status in STATUSES
    if status not in (405, 412, 413, 415, 428)
} | {"4XX": {"model": Problem, "description": "Problem"}}


def create_api() -> FastAPI:
    """Return the API's application; it is mounted at /api/v1."""
    api = FastAPI(
        title="Quadgate", version=VERSION, description=DESCRIPTION, openapi_url="/openapi.json", docs_url=None, redoc_url=None, responses=ERRORS
    )
    problems.install(api)
    for router in (engagements.router, attempts.router, judgements.router, papers.router, register.router, packing.router, wipes.router):
        api.include_router(router)

    @api.get("/docs", include_in_schema=False)
    def docs(request: Request) -> Response:
        return page(request, "api.html", spec=_with_problems(api.openapi()), codes=codes(), unfilled=unfilled, inbox=None)

    original = api.openapi
    api.openapi = lambda: _with_problems(original())  # type: ignore[method-assign]
    return api


def _with_problems(spec: dict[str, Any]) -> dict[str, Any]:
    """Say of every error that it is a problem document: FastAPI would call its own validation errors JSON."""
    for path in spec["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                if not str(status).startswith(("2", "3")):
                    response["content"] = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for name in ("HTTPValidationError", "ValidationError"):
        spec["components"]["schemas"].pop(name, None)
    return spec
