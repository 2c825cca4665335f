"""Deviations, waivers, punch items: recorded with owner, reason and due date, closed with a note, never rewritten.

A waiver takes effect as a record when both parties approve it (app/approvals, kind `waiver`). It changes no verdict, uses up and gives
back no attempt, and opens no gate.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import PARTIES, Permission
from app.approvals import repository as approvals
from app.audit.chain import record
from app.deviations import repository
from app.deviations.models import Deviation
from app.deviations.views import LETTERS, deviation_view, digest, label, views_of
from app.engagements import access
from app.engagements import facts as engagement_facts
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import BadInput, FieldProblem, NotFound, Refused
from app.kit.i18n import N_
from app.kit.words import choices
from gates.pipeline import engagement_state
from gates.pipeline_facts import GATES, State
from gates.text import seen

KINDS = tuple(LETTERS)
SEVERITIES = ("major", "minor")
LONGEST_WHAT, LONGEST_REASON, LONGEST_OWNER = 500, 2000, 120
SHORTEST = 2  # two characters are a word in Chinese


def record_deviation(
    s: Session,
    *,
    engagement_id: str,
    kind: str,
    gate: str,
    what: str,
    reason: str,
    owner_party: str,
    owner: str,
    due: str,
    severity: str = "minor",
    actor: Actor,
) -> Deviation:
    """Enter a deviation, a waiver or a punch item. `due` is a date, YYYY-MM-DD.

    The same person's same words are one entry while it is open: a form that was sent twice records nothing twice.
    Raises BadInput that names each field, Refused when the engagement was closed.
    """
    require(actor, Permission.RECORD_DEVIATION)
    engagement = access.find(s, engagement_id, actor, lock=True)
    state, why = engagement_state(engagement_facts.gather(s, engagement))
    if state is State.CLOSED:
        raise Refused(str(state), why)
    what, reason, owner = what.strip(), reason.strip(), owner.strip()
    when, problems = _due(due)
    problems += _problems(kind, gate, severity, owner_party)
    for name, text, least, most in (
        ("what", what, SHORTEST, LONGEST_WHAT),
        ("reason", reason, SHORTEST, LONGEST_REASON),
        ("owner", owner, 1, LONGEST_OWNER),
    ):
        problems += _text(name, text, least, most)
    if problems or when is None:
        raise BadInput("bad_deviation", N_("This entry cannot be recorded. Problems: {count}."), problems, count=len(problems))
    row = Deviation(
        id=new_id(),
        engagement_id=engagement_id,
        number=repository.next_number(s, engagement_id),
        kind=kind,
        gate=gate,
        severity=severity,
        what=what,
        reason=reason,
        owner_party=owner_party,
        owner=owner,
        due=when,
        recorded_by=actor.name,
        recorded_party=actor.party,
        created_at=now(),
    )
    decided = {approval.object_id for approval in approvals.approvals_of(s, engagement_id)}  # a waiver that was rejected can be asked for again
    before = next((entry for entry in repository.same_open_entries(s, row) if entry.id not in decided), None)
    if before is not None:
        return before
    s.add(row)
    s.flush()
    told = {"engagement": engagement.code, "label": label(row), "gate": gate, "owner": owner, "due": due, "hash": digest(row)}
    record(s, actor=actor, action=f"{kind}.record", object_kind="deviation", object_id=row.id, data=told)
    engagement_facts.settle(s, engagement, actor)
    return row


def close_deviation(s: Session, *, deviation_id: str, closing: str, actor: Actor) -> Deviation:
    """Close an entry: say what was done. It stays in the register and in the reports. Raises Refused when it is closed already."""
    require(actor, Permission.RECORD_DEVIATION)
    found = repository.deviation(s, deviation_id)
    if found is None:
        raise _unknown(deviation_id)
    engagement = access.find(s, found.engagement_id, actor, lock=True)
    s.refresh(found)
    if found.closed_at is not None:
        raise Refused("deviation_closed", N_("{label} was closed already, by {name}."), label=label(found), name=found.closed_by)
    closing = closing.strip()
    if problems := _text("closing", closing, SHORTEST, LONGEST_REASON):
        raise BadInput("bad_closing", N_("{label} stays open: say what was done, so that both parties can see it."), problems, label=label(found))
    found.closed_at, found.closed_by, found.closed_party, found.closing = now(), actor.name, actor.party, closing
    s.flush()
    told = {"engagement": engagement.code, "label": label(found), "closing": closing}
    record(s, actor=actor, action=f"{found.kind}.close", object_kind="deviation", object_id=found.id, data=told)
    engagement_facts.settle(s, engagement, actor)
    return found


def deviations(s: Session, *, engagement_id: str, actor: Actor) -> list[dict[str, Any]]:
    """Return the register of an engagement, what is not closed first."""
    require(actor, Permission.VIEW)
    engagement = access.find(s, engagement_id, actor)
    return views_of(s, engagement.id, approvals.approvals_of(s, engagement.id))


def deviation_seen(s: Session, *, deviation_id: str, actor: Actor) -> dict[str, Any]:
    """Return one entry. Raises NotFound for an unknown one and for one that the actor does not see, alike."""
    require(actor, Permission.VIEW)
    found = repository.deviation(s, deviation_id)
    if found is None:
        raise _unknown(deviation_id)
    access.find(s, found.engagement_id, actor)
    return deviation_view(found, approvals.approvals_of(s, found.engagement_id)) | {"engagement_id": found.engagement_id}


def _unknown(deviation_id: str) -> NotFound:
    return NotFound("no_such_deviation", N_("There is no entry {id} in any register."), id=deviation_id)


def _due(text: str) -> tuple[date | None, list[FieldProblem]]:
    """Return the due date. Yesterday is taken: west of Greenwich it is still today."""
    try:
        when = date.fromisoformat(text.strip())
    except ValueError:
        return None, [FieldProblem("/due", N_("A due date like 2026-12-31 is needed."))]
    if when < now().date() - timedelta(days=1):
        return when, [FieldProblem("/due", N_("The due date {due} is over already."), {"due": text.strip()})]
    return when, []


def _problems(kind: str, gate: str, severity: str, owner_party: str) -> list[FieldProblem]:
    fields = (
        ("kind", "register_kind", kind, KINDS),
        ("gate", "gate", gate, GATES),
        ("severity", "severity_of", severity, SEVERITIES),
        ("owner_party", "party", owner_party, sorted(PARTIES)),
    )
    return [
        FieldProblem(f"/{name}", N_("Choose one of these values: {expected}."), {"expected": choices(words, known)})
        for name, words, value, known in fields
        if value not in known
    ]


def _text(name: str, text: str, least: int, most: int) -> list[FieldProblem]:
    if least <= len(seen(text)) and len(text) <= most and not any(c < " " and c not in "\r\n\t" for c in text):
        return []
    return [FieldProblem(f"/{name}", N_("Text of {least} to {most} characters is needed."), {"least": least, "most": most})]
