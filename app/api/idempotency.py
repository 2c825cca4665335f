"""The same POST twice does its work once: the first answer is stored under the caller's key, in the transaction of the work."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.accounts.actor import Actor
from app.api.models import IdempotencyKey
from app.api.problems import BadHeader
from app.kit.clock import now
from app.kit.db import read_session, write_session
from app.kit.errors import BadInput
from app.kit.i18n import N_

HEADER = "Idempotency-Key"
_KEY = re.compile(r"[\x21-\x7e]{8,120}")


@dataclass(frozen=True)
class Answer:
    """What a POST answers with: status, JSON body, headers."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def once(
    request: Request,
    actor: Actor,
    payload: bytes,
    work: Callable[[Session], Answer],
    *,
    required: bool = False,
    first: Callable[[], object] | None = None,
) -> Response:
    """Do a write, or replay what the same key and payload were answered with before.

    `first` takes long, so it is done with transactions of its own, before the one that stores the answer; should the answer get lost between
    the two, the same request does it once more.

    Raises BadHeader (400) when a needed key is missing or malformed, BadInput (422) when the key was used for something else.
    An error stores nothing: the same request may be sent again.
    """
    key = request.headers.get(HEADER, "").strip().strip('"')
    if required and not key:
        raise BadHeader(
            "idempotency_key_missing",
            N_("This request starts something, so it needs the header Idempotency-Key: a text of your own, new for each thing to start."),
        )
    if key and not _KEY.fullmatch(key):
        raise BadHeader("idempotency_key_malformed", N_("The Idempotency-Key must be 8 to 120 visible ASCII characters."))
    fingerprint = hashlib.sha256(f"{request.method} {request.url.path}\n".encode() + payload).hexdigest()
    if first is not None:
        with read_session() as s:
            stored = _stored(s, actor, key)
        if stored is not None:
            return _replay(stored, fingerprint)
        first()
    with write_session() as s:
        if (stored := _stored(s, actor, key)) is not None:
            return _replay(stored, fingerprint)
        answer = work(s)
        if key:
            text = json.dumps({"body": answer.body, "headers": answer.headers}, ensure_ascii=False)
            s.add(IdempotencyKey(user_id=actor.user_id, key=key, fingerprint=fingerprint, status=answer.status, body=text, at=now()))
    return JSONResponse(answer.body, answer.status, answer.headers)


def _stored(s: Session, actor: Actor, key: str) -> IdempotencyKey | None:
    if not key:
        return None
    return s.scalar(select(IdempotencyKey).where(IdempotencyKey.user_id == actor.user_id, IdempotencyKey.key == key))


def _replay(stored: IdempotencyKey, fingerprint: str) -> Response:
    """Return the stored answer, or refuse the key of another request."""
    if stored.fingerprint != fingerprint:
        raise BadInput(
            "idempotency_key_reused",
            N_("This Idempotency-Key was used for another request at {at}. Use a new key for a new request."),
            at=stored.at.isoformat(),
        )
    kept = json.loads(stored.body)
    return JSONResponse(kept["body"], stored.status, {**kept["headers"], "Idempotent-Replayed": "true"})
