"""Causes of the events that broke a soak's run: recorded by a person for one event, approved by both parties, read by the judge.

DESIGN 4.12: after a host reboot or a site fault the soak clock restarts when both parties approve the cause, else nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.attempts import access
from app.attempts import revisions as judgements
from app.attempts.models import AttemptCause
from app.audit.chain import record
from app.kit.clock import now, stamp
from app.kit.db import new_id
from app.kit.errors import BadInput, FieldProblem, Refused
from app.kit.i18n import N_
from app.kit.words import offered
from gates.canonical import sha256_of
from gates.text import Text

KINDS = {
    "power": Text("power", "供电"),
    "network": Text("network", "网络"),
    "cooling": Text("cooling", "制冷"),
    "maintenance": Text("maintenance", "维护操作"),
    "host": Text("host fault", "主机故障"),
    "other": Text("other", "其他"),
}


def claim_cause(s: Session, *, attempt_id: str, event: str, kind: str, text: str, actor: Actor) -> AttemptCause:
    """Record the cause of one event that the newest verdict of the attempt names. Another text is another claim: approvals do not carry over.

    Raises BadInput for an event that the verdict does not know and for a kind that there is not, Refused once a cause of it is agreed.
    """
    from app.attempts.usecases import reason_of  # which offers this use case too

    require(actor, Permission.CLAIM_RIG_CAUSE)
    attempt, _ = access.find_attempt(s, attempt_id, actor, lock=True)
    judged = judgements.newest(s, attempt_id)
    known = {str(b["event"]): b for b in breaks_of(judged.document if judged else {})}
    problems = []
    if event not in known:
        problems.append(FieldProblem("/event", N_("The verdict of this attempt knows no event {event}."), {"event": event or "-"}))
    if kind not in KINDS:
        problems.append(FieldProblem("/kind", N_("Choose one of these values: {expected}."), {"expected": offered(KINDS)}))
    if problems:
        raise BadInput("bad_cause", N_("The cause cannot be recorded."), problems)
    if any(c["event"] == event and c["approved"] for c in _as_judged(s, attempt_id)):
        raise Refused("cause_stands", N_("Both parties have approved a cause of this event already; it does not change any more."))
    row = AttemptCause(
        id=new_id(),
        attempt_id=attempt.id,
        event=event,
        hour=str(known[event]["hour"]),
        what=known[event]["what"],
        kind=kind,
        text=reason_of(text, "/text"),
        user_id=actor.user_id,
        person=actor.name,
        party=actor.party,
        at=now(),
    )
    s.add(row)
    s.flush()
    data = {"cause": row.id, "event": event, "hour": row.hour, "kind": kind, "text": row.text, "hash": digest(row)}
    record(s, actor=actor, action="attempt.claim_cause", object_kind="attempt", object_id=attempt.id, data=data)
    return row


def digest(row: AttemptCause) -> str:
    """Return the hash of a claimed cause: what the parties approve. It binds the attempt, the event and the words."""
    return sha256_of({"attempt": row.attempt_id, "event": row.event, "hour": row.hour, "kind": row.kind, "text": row.text})


def newest_of(s: Session, attempt_ids: Iterable[str]) -> list[AttemptCause]:
    """Return the cause that counts of each event of some attempts: the newest, in the order in which they were recorded."""
    query = select(AttemptCause).where(AttemptCause.attempt_id.in_(list(attempt_ids))).order_by(AttemptCause.at, AttemptCause.id)
    found: dict[tuple[str, str], AttemptCause] = {}
    for row in s.execute(query).scalars():
        found[(row.attempt_id, row.event)] = row
    return list(found.values())


def breaks_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events that broke the run, as a verdict names them; none but a soak has any."""
    rows = (document.get("figures") or {}).get("breaks")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def causes_view(s: Session, attempt_id: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every event with the cause that counts, as the faces show it: {event, kind, title, hour, what, cause | null, approved, missing}."""
    rows, decided = {c.event: c for c in newest_of(s, [attempt_id])}, {c["event"]: c for c in _as_judged(s, attempt_id)}
    out = []
    for found in breaks_of(document):
        row, said = rows.get(str(found["event"])), decided.get(str(found["event"]))
        cause = None
        if row is not None:
            about = {"kind": row.kind, "kind_text": KINDS[row.kind].json(), "text": row.text, "person": row.person, "party": row.party}
            cause = {"id": row.id, **about, "at": stamp(row.at), "hash": digest(row)}
        approved = bool(said and said["approved"])
        out.append(
            {
                "event": found["event"],
                "kind": found["kind"],
                "title": found["title"],
                "hour": found["hour"],
                "what": found["what"],
                "cause": cause,
                "approved": approved,
                "missing": said["missing"] if said else ["vendor", "customer"],
            }
        )
    return out


def _as_judged(s: Session, attempt_id: str) -> list[dict[str, Any]]:
    """Return the causes as the judge is told of them."""
    from app.evidence.usecases import inputs  # evidence asks attempts for their rows in turn

    rows: list[dict[str, Any]] = inputs(s, attempt_id)["rig_causes"]
    return rows
