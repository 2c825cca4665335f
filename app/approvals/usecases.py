"""Approvals: one person says yes or no to one object, by its hash, for the person's own party. Nothing else approves anything."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.approvals import effects, objects
from app.approvals.models import Approval
from app.approvals.objects import Item
from app.approvals.views import approval_view
from app.attempts import repository as attempts
from app.attempts.forms import check_file
from app.attempts.models import AttemptCause
from app.audit.chain import record
from app.deviations import repository as deviations
from app.engagements import access, repository
from app.engagements.models import Engagement
from app.evidence import store
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import BadInput, Conflict, FieldProblem, Forbidden, NotFound, Refused
from app.kit.i18n import N_
from app.packing import repository as packing
from app.plans import repository as plans
from app.wipes import repository as wipes
from gates.text import seen

DECISIONS = ("approve", "reject")
SHORTEST_REASON, LONGEST_COMMENT = 2, 4000  # two characters are a word in Chinese


def approve(
    s: Session,
    *,
    object_kind: str,
    object_id: str,
    object_hash: str,
    decision: str,
    comment: str = "",
    actor: Actor,
    scan: bytes | None = None,
    scan_name: str = "",
) -> Approval:
    """Record a decision and, when both parties agree by it, let its effect follow in the same transaction.

    The party is the person's own, never the request's. Raises Forbidden for a token, the command line, another role, or a person whom
    the engagement does not name as an approver; Conflict when the object changed since it was looked at; Refused when it cannot be decided now or
    this person has decided, but that a rejection can be taken back by approving; BadInput for a rejection, or its taking back, without a reason.
    """
    require(actor, Permission.APPROVE)
    engagement, item = _find(s, object_kind, object_id, actor)
    if not access.approves(actor, engagement):
        raise Forbidden(
            "not_named",
            N_("{name} is not among the approvers whom engagement {engagement} names for that party."),
            name=actor.name,
            engagement=engagement.code,
        )
    before = item.said_by(actor.user_id)
    _check_decision(decision, comment, takes_back=before is not None and before.decision == "reject")
    if object_hash != item.hash:
        raise Conflict(
            "changed_since",
            N_("{title} changed since you looked: it is {now} now, and you decided on {seen}. Look again, then decide."),
            title=item.title,
            now=item.hash,
            seen=object_hash or "-",
        )
    if before and (before.decision, decision) != ("reject", "approve"):
        raise Refused("decided", N_("You have decided on this already. Only a rejection can be taken back, by approving; an approval is final."))
    if item.refusal:
        raise Refused("not_open", item.refusal)
    given = Approval(
        id=new_id(),
        engagement_id=engagement.id,
        object_kind=object_kind,
        object_id=object_id,
        object_hash=item.hash,
        party=actor.party,
        user_id=actor.user_id,
        person=actor.name,
        role=actor.title or "approver",
        decision=decision,
        comment=comment.strip(),
        scan_sha256=_keep_scan(item, scan, scan_name, decision),
        at=now(),
    )
    s.add(given)
    s.flush()
    data = {key: getattr(given, key) for key in ("object_kind", "object_id", "object_hash", "party", "person", "decision", "comment", "scan_sha256")}
    record(s, actor=actor, action=f"approval.{decision}", object_kind="approval", object_id=given.id, data=data)
    effects.follow(s, engagement, item, actor)
    return given


def pending(s: Session, *, actor: Actor) -> list[dict[str, Any]]:
    """Return what waits for a decision in all engagements that the actor sees; `mine` marks what waits for this very person."""
    require(actor, Permission.VIEW)
    found = []
    for engagement in repository.engagements(s):
        if access.sees(actor, engagement):
            may = actor.may(Permission.APPROVE) and access.approves(actor, engagement)
            found += [_pending(engagement, item, actor, may) for item in objects.items(s, engagement) if item.refusal is None]
    return found


def _pending(engagement: Engagement, item: Item, actor: Actor, may: bool) -> dict[str, Any]:
    spoke = actor.party in item.decided.approved | item.decided.rejected
    before = item.said_by(actor.user_id)
    return {
        "engagement_id": engagement.id,
        "code": engagement.code,
        "customer": engagement.customer,
        "simulated": bool(engagement.targets["simulated"]),
        "gate": item.gate,
        "object_kind": item.kind,
        "object_id": item.id,
        "object_hash": item.hash,
        "title": item.title.json(),
        "reason": item.reason.json(),
        "attempt_id": item.attempt_id,
        "scan_required": item.scan_required,
        "missing": list(item.decided.missing),
        "approvals": [approval_view(given) for given in item.given],
        "mine": may and not spoke,
        "rejected_by_me": may and before is not None and before.decision == "reject",
    }


def _find(s: Session, kind: str, object_id: str, actor: Actor) -> tuple[Engagement, Item]:
    """Return the object of a decision. Raises NotFound for an unknown one and for one that the actor does not see."""
    if kind not in objects.KINDS:
        raise BadInput("bad_kind", N_("There is no such thing to approve: {kind}. There are: {known}."), kind=kind, known=", ".join(objects.KINDS))
    if kind == "plan":
        revision = plans.revision(s, object_id)
        engagement_id = revision.engagement_id if revision else ""
    elif kind == "close":
        engagement_id = object_id
    elif kind == "waiver":
        entry = deviations.deviation(s, object_id)
        engagement_id = entry.engagement_id if entry else ""
    elif kind == "packing":
        proposed = packing.revision(s, object_id)
        engagement_id = proposed.engagement_id if proposed else ""
    elif kind == "wipe":
        order = wipes.order(s, object_id)
        engagement_id = order.engagement_id if order else ""
    else:
        cause = s.get(AttemptCause, object_id) if kind == "soak_cause" else None
        attempt = attempts.attempt(s, cause.attempt_id if cause else object_id)
        engagement_id = attempt.engagement_id if attempt else ""
    engagement = repository.engagement(s, engagement_id, lock=True)
    visible = engagement if engagement and access.sees(actor, engagement) else None
    item = next((i for i in objects.items(s, visible) if (i.kind, i.id) == (kind, object_id)), None) if visible else None
    if visible is None or item is None:
        raise NotFound("nothing_to_approve", N_("There is nothing of the kind {kind} with the id {id} to decide on."), kind=kind, id=object_id)
    return visible, item


def _check_decision(decision: str, comment: str, *, takes_back: bool) -> None:
    problems = []
    if decision not in DECISIONS:
        problems.append(FieldProblem("/decision", N_("The decision is approve or reject.")))
    if decision == "reject" and len(seen(comment)) < SHORTEST_REASON:
        problems.append(FieldProblem("/comment", N_("A rejection needs a reason: say what would have to change.")))
    if decision == "approve" and takes_back and len(seen(comment)) < SHORTEST_REASON:
        problems.append(
            FieldProblem("/comment", N_("You rejected this before. Say what has changed since: the rejection stays on record beside it."))
        )
    if len(comment) > LONGEST_COMMENT:
        problems.append(FieldProblem("/comment", N_("A comment has at most {most} characters."), {"most": LONGEST_COMMENT}))
    if problems:
        raise BadInput("bad_decision", N_("The decision cannot be recorded."), problems)


def _keep_scan(item: Item, scan: bytes | None, name: str, decision: str) -> str | None:
    """Store the scan of the signed report under its hash; only a sign-off carries one, and where the plan requires the signatures, must."""
    if not scan:
        if item.scan_required and decision == "approve":
            field = FieldProblem("/scan", N_("Print the report, let it be signed and stamped, and send its scan (PDF, PNG, JPEG or WebP) along."))
            sentence = N_("{gate} cannot be signed off without the scan of the signed report: the plan requires its sign-off.")
            raise BadInput("scan_missing", sentence, [field], gate=item.gate or "")
        return None
    if item.kind != "sign_off":
        raise BadInput("no_scan_here", N_("A scan belongs to the sign-off of a report only."), [FieldProblem("/scan", N_("No scan is taken here."))])
    check_file(name or "scan", scan, "/scan")
    return store.put_bytes(scan).sha256
