"""One change of an attempt's status by a person: status, transition row and audit row together.

The engine's own changes are committed under its lease (`app.engine.claim`), by the same table.
"""

from __future__ import annotations

import json

from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.attempts.models import Attempt, Transition
from app.audit.chain import record
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import Refused
from gates.text import Text
from gates.transitions import Event, IllegalTransition, RunStatus, apply

_BOTH = '{"en"'  # how a sentence of ours begins when it is kept in both languages
CREATE = "create"  # the one event that has no status before it


def created(s: Session, attempt: Attempt, actor: Actor) -> None:
    """Write the first transition of a new attempt."""
    _write(s, attempt, "", CREATE, actor, "")


def move(s: Session, attempt: Attempt, event: Event, actor: Actor, reason: str | Text = "") -> None:
    """Apply an event. Raises Refused when the present status does not allow it; nothing is written then.

    The generation grows, so that whatever the engine began under the old one can no longer be committed.
    """
    before = RunStatus(attempt.status)
    after = apply(before, event)
    if isinstance(after, IllegalTransition):
        raise Refused("illegal_transition", after.text)
    attempt.status = str(after)
    attempt.generation += 1
    attempt.lease_owner = attempt.lease_until = None
    if after.ended:
        attempt.finished_at = now()
    _write(s, attempt, str(before), str(event), actor, reason)


def _write(s: Session, attempt: Attempt, before: str, event: str, actor: Actor, reason: str | Text) -> None:
    s.add(
        Transition(
            id=new_id(),
            attempt_id=attempt.id,
            generation=attempt.generation,
            from_status=before,
            event=event,
            to_status=attempt.status,
            actor=actor.label,
            reason=kept_reason(reason),
            at=now(),
        )
    )
    s.flush()
    data = {"from": before, "event": event, "to": attempt.status, "generation": attempt.generation, "reason": audited_reason(reason)}
    record(s, actor=actor, action=f"attempt.{event}", object_kind="attempt", object_id=attempt.id, data=data)


def kept_reason(reason: str | Text | None) -> str:
    """Return a reason as a transition or a cancel keeps it: a person's words as they are, the service's own sentence in both languages."""
    if isinstance(reason, Text):
        return reason.en if reason.en == reason.zh else json.dumps(reason.json(), ensure_ascii=False)
    return f" {reason}" if reason and reason.startswith(_BOTH) else reason or ""  # a person says one and the same to readers of either language


def audited_reason(reason: str | Text | None) -> str:
    """Return a reason as the audit chain keeps it: one text, the English one of a sentence of ours."""
    return reason.en if isinstance(reason, Text) else reason or ""


def reason_pair(kept: str) -> Text:
    """Return what `kept_reason` was given in both languages: a person's words are the same in both."""
    told = shown_reason(kept)
    return Text.parse(told) if isinstance(told, dict) else Text(told, told)


def shown_reason(kept: str) -> str | dict[str, str]:
    """Return what `kept_reason` was given, as JSON data."""
    if not kept.startswith(_BOTH):
        return kept
    try:
        told = json.loads(kept)
    except ValueError:
        return kept
    return told if isinstance(told, dict) and set(told) == {"en", "zh-CN"} else kept
