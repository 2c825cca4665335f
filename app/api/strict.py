"""JSON bodies as they were written: exact numbers, no key twice, nothing that is no text. Otherwise two readers of one body could differ."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.kit.i18n import N_, pair
from gates.canonical import has_broken_text
from gates.text import Text

DEEPEST = 60
MOST_DIGITS = 4300  # of a whole number, as Python's own limit: reading one takes time that grows with the square


class Refusal(json.JSONDecodeError):
    """JSON that is refused for a reason of our own: `msg` is the reason in both languages, which the problem document takes as it is."""

    def __init__(self, reason: Text, at: int = 0) -> None:
        super().__init__(reason.en, "", at)
        self.msg = reason  # type: ignore[assignment]


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
            raise Refusal(pair(N_("the body is not UTF-8 text")), error.start) from None
        try:
            value = json.loads(text, parse_float=Decimal, parse_int=_whole, parse_constant=_no_number, object_pairs_hook=_once)
        except json.JSONDecodeError:
            raise
        except ArithmeticError:  # an exponent beyond what even a Decimal holds
            raise Refusal(pair(N_("a number is beyond all reason"))) from None
        except RecursionError:
            raise _too_deep() from None
        if has_broken_text(value, text) or "\\u0000" in text:
            raise Refusal(pair(N_("a character that is no text (NUL, or half of a surrogate pair)")))
        if _depth(value) > DEEPEST:
            raise _too_deep()
        return value


def _too_deep() -> Refusal:
    return Refusal(pair(N_("nested deeper than {most} levels"), most=DEEPEST))


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
            raise Refusal(pair(N_("the key {key} stands twice in one object"), key=json.dumps(key)))
        found[key] = value
    return found


def _no_number(word: str) -> Any:
    raise Refusal(pair(N_("{word} is no number in JSON"), word=word))


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Refusal(pair(N_("a number has {count} digits, more than {most}"), count=len(digits.lstrip("-")), most=MOST_DIGITS))
    return int(digits)
