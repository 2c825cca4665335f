"""JSON bodies as they were written: exact numbers, no key twice, nothing that is no text. Otherwise two readers of one body could differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from gates.canonical import has_broken_text

DEEPEST = 60


class StrictRoute(APIRoute):
    """A route whose JSON body is read strictly; what is wrong becomes the problem `json_invalid` with its reason."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, which sees the request through our own reader."""
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly


class StrictRequest(Request):
    """A request whose `json` is strict."""

    async def json(self) -> Any:
        """Return the body's data. Raises JSONDecodeError for anything else than plain, unambiguous JSON."""
        raw = await self.body()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise json.JSONDecodeError("the body is not UTF-8 text", "", error.start) from None
        try:
            value = json.loads(text, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_once)
        except json.JSONDecodeError:
            raise
        except (ValueError, ArithmeticError) as error:
            raise json.JSONDecodeError(str(error), "", 0) from None
        except RecursionError:
            raise json.JSONDecodeError(_TOO_DEEP, "", 0) from None
        if has_broken_text(value, text) or "\\u0000" in text:
            raise json.JSONDecodeError("a character that is no text (NUL, or half of a surrogate pair)", "", 0)
        if _depth(value) > DEEPEST:
            raise json.JSONDecodeError(_TOO_DEEP, "", 0)
        return value


_TOO_DEEP = f"nested deeper than {DEEPEST} levels"


def _depth(value: Any) -> int:
    """Return how deep a tree is, without recursion and at most one level more than is taken."""
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        depth += 1
        level = [child for item in level if isinstance(item, dict | list) for child in (item.values() if isinstance(item, dict) else item)]
    return depth


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number in JSON")
