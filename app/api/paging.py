"""Cursor paging with `Link` headers (RFC 8288). A cursor is opaque: it says after which item the page begins."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request

from app.kit.errors import BadInput, FieldProblem
from app.kit.i18n import N_

Limit = Annotated[int, Query(ge=1, le=1000, description="How many items at most.")]
Cursor = Annotated[str | None, Query(max_length=200, description="The cursor of the page before: take it from the header Link or from `next`.")]


def encode(kind: str, value: str | int) -> str:
    """Return the cursor of an item of a kind of list."""
    return base64.urlsafe_b64encode(f"{kind}:{value}".encode()).decode().rstrip("=")


def decode(kind: str, cursor: str | None) -> str | None:
    """Return the item of a cursor, None for the first page. Raises BadInput for a cursor of another list or a damaged one."""
    if not cursor:
        return None
    try:
        got, _, value = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(":")
    except (binascii.Error, ValueError):
        got, value = "", ""
    if got != kind or not value:
        raise bad_cursor()
    return value


def decode_number(kind: str, cursor: str | None) -> int:
    """Return the number of a cursor, 0 for the first page."""
    value = decode(kind, cursor)
    if value is None:
        return 0
    if not value.isdecimal() or len(value) > 18:
        raise bad_cursor()
    return int(value)


def bad_cursor() -> BadInput:
    """Return the error for a cursor that no page of this list gave out."""
    return BadInput(
        "bad_cursor",
        N_("The cursor is not one of this list."),
        [FieldProblem("/query/cursor", N_("Take it unchanged from the header Link, or leave it out to begin at the start."))],
    )


def link_next(request: Request, cursor: str | None) -> dict[str, str]:
    """Return the `Link` header to the next page; none on the last one."""
    if cursor is None:
        return {}
    query = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
    return {"Link": f'<{request.url.path}?{urlencode([*query, ("cursor", cursor)])}>; rel="next"'}
