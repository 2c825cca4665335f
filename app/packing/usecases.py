"""Revising the packing list of an engagement: proposed by an engineer, in force once a person of each party has approved that very list.

A list is not changed under an attempt: each is judged, and printed, by the list that was in force when it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.approvals import repository as approvals
from app.audit.chain import record
from app.engagements import access
from app.engagements import facts as engagement_facts
from app.engagements.file import pointer, read_packing_list
from app.engagements.models import Engagement
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import BadInput, Conflict, FieldProblem, Refused
from app.kit.i18n import N_
from app.packing import repository
from app.packing.models import PackingRevision
from app.packing.rules import closed
from app.packing.views import changes, digest, packing_view
from gates.canonical import sha256_of
from gates.g1.packing import packing_warning
from gates.plan import InvalidPlan, load_yaml
from gates.text import seen

SHORTEST, LONGEST = 2, 2000  # two characters are a word in Chinese
MOST_CHARACTERS = 1 << 20


def read_text(text: str) -> Any:
    """Return what a YAML text holds: the list, alone or below the key packing_list as in an engagement file. Raises BadInput with the line."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput("text_too_long", N_("The text has {size} characters; at most {most} are read."), size=len(text), most=MOST_CHARACTERS)
    try:
        found = load_yaml(text)
    except InvalidPlan as error:
        raise _bad([FieldProblem("", p.message) for p in error.problems]) from None
    return found["packing_list"] if isinstance(found, dict) and list(found) == ["packing_list"] else found


def preview(s: Session, *, engagement_id: str, entries: Any, actor: Actor) -> dict[str, Any]:
    """Return what a list would change, what it lacks of the order, and the hash of the present list; keeps nothing. Raises as proposing does."""
    require(actor, Permission.REVISE_PLAN)
    engagement = access.find(s, engagement_id, actor)
    entries = _checked(s, engagement, entries)
    warned = packing_warning(engagement.order, entries)
    told = changes(engagement.packing_list, entries)
    return {"changes": told, "warning": warned.json() if warned else None, "base": sha256_of(engagement.packing_list)}


def propose(s: Session, *, engagement_id: str, entries: Any, reason: str, actor: Actor, base: str = "") -> PackingRevision:
    """Propose a whole new packing list; an earlier proposal that waits is replaced by it.

    `base` is the hash of the list that the change was made from, when the caller looked at one. Raises BadInput that names each field, Refused when
    G1 has passed or the engagement has ended, Conflict when the list in force is another one than `base`.
    """
    require(actor, Permission.REVISE_PLAN)
    engagement = access.find(s, engagement_id, actor, lock=True)
    entries, reason = _checked(s, engagement, entries), reason.strip()
    if base and base != sha256_of(engagement.packing_list):
        raise Conflict("changed_since", N_("The packing list was revised since you looked. Look again."))
    if len(seen(reason)) < SHORTEST or len(reason) > LONGEST:
        words = N_("A reason of {least} to {most} characters is needed.")
        raise _bad([FieldProblem("/reason", words, {"least": SHORTEST, "most": LONGEST})])
    row = PackingRevision(
        id=new_id(),
        engagement_id=engagement_id,
        number=repository.next_number(s, engagement_id),
        packing_list=entries,
        reason=reason,
        proposed_by=actor.name,
        proposed_party=actor.party,
        proposed_at=now(),
    )
    s.add(row)
    s.flush()
    told = {"engagement": engagement.code, "revision": row.number, "hash": digest(row), "reason": reason}
    record(s, actor=actor, action="packing.propose", object_kind="packing_revision", object_id=row.id, data=told)
    engagement_facts.settle(s, engagement, actor)
    return row


def put_in_force(s: Session, engagement: Engagement, row: PackingRevision, actor: Actor) -> None:
    """Put a revision in force: the effect of both parties' approval of its hash. Attempts that were begun keep their list."""
    if row.agreed_at is not None:
        return
    row.replaces, row.agreed_at = engagement.packing_list, now()
    engagement.packing_list = row.packing_list
    s.flush()
    told = {"engagement": engagement.code, "revision": row.number, "hash": digest(row), **changes(row.replaces, row.packing_list)}
    record(s, actor=actor, action="packing.revise", object_kind="packing_revision", object_id=row.id, data=told)


def packing(s: Session, *, engagement_id: str, actor: Actor) -> dict[str, Any]:
    """Return the packing list in force with all its revisions, and why it cannot be revised (`closed`), if it cannot."""
    require(actor, Permission.VIEW)
    engagement = access.find(s, engagement_id, actor)
    refused = closed(engagement_facts.gather(s, engagement))
    told = packing_view(s, engagement, approvals.approvals_of(s, engagement.id))
    return {**told, "engagement_id": engagement.id, "closed": refused.json() if refused else None}


def _checked(s: Session, engagement: Engagement, entries: Any) -> list[Any]:
    refused = closed(engagement_facts.gather(s, engagement))
    if refused:
        raise Refused("packing_closed", refused)
    read, problems = read_packing_list(entries, engagement.targets["hosts"])
    if problems:
        raise _bad([FieldProblem(pointer(p.path), p.message) for p in problems])
    if changes(engagement.packing_list, read) == {"removed": [], "added": []}:
        raise Refused("packing_unchanged", N_("The packing list says this already; nothing was changed."))
    return read


def _bad(problems: Sequence[FieldProblem]) -> BadInput:
    return BadInput("bad_packing_list", N_("The packing list cannot be used. Problems: {count}."), list(problems), count=len(problems))
