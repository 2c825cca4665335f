"""The words of the joint test, explained: open to everybody, since a report is read by people without an account too."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.kit.glossary import ENTRIES
from app.web.render import page
from app.web.security import Visitor, visitor

router = APIRouter()


@router.get("/words")
def words(request: Request, _who: Annotated[Visitor, Depends(visitor)]) -> Response:
    """Show every word with its meaning."""
    return page(request, "words.html", entries=ENTRIES)
