"""What follows from a judgement, in the transaction that stores it: a verdict without its consequence cannot exist.

The newest judgement holds. When it differs from the one before, everything that followed from that one is worked out anew from what
holds now: where the gates and the engagement stand, the frozen baseline of G2, and whether an attempt that is going on may go on.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor
from app.attempts import repository
from app.attempts.models import Attempt
from app.attempts.moves import audited_reason, kept_reason
from app.audit.chain import record
from app.engagements import facts as engagement_facts
from app.engagements import repository as engagements
from app.engagements.models import Engagement
from app.kit.clock import now
from app.kit.db import database_now
from app.kit.errors import NotFound, Refused
from app.kit.i18n import N_
from gates.canonical import sha256_of
from gates.model import Verdict
from gates.pipeline import engagement_state
from gates.pipeline_facts import Facts, State


def conclude(s: Session, attempt: Attempt | str, document: dict[str, Any], actor: Actor = SYSTEM) -> None:
    """Put the newest judgement's verdict on the attempt, and let what follows from it follow, by the plan.

    A first judgement and any later one alike: there is one way to a verdict. Judging the same again changes nothing.
    """
    row = repository.attempt(s, attempt) if isinstance(attempt, str) else attempt
    if row is None:
        raise NotFound("no_such_attempt", N_("There is no attempt {id}."), id=str(attempt))
    if row.rehearsal:
        raise Refused("rehearsal", N_("A rehearsal is never judged."))
    verdict, because = str(Verdict(document["verdict"])), [str(reason) for reason in document.get("because") or []]
    way_on = document.get("extension") or {}
    row.may_extend_by = int(way_on["pairs"]) if way_on.get("may") is True else 0
    if row.extension and row.extension["judged"] is None:
        row.extension = {**row.extension, "judged": sha256_of(document)}
    if (row.verdict, row.because) != (verdict, because):
        before, row.verdict, row.because = row.verdict, verdict, because
        s.flush()
        data = {"gate": row.gate, "number": row.number, "verdict": verdict, "because": because, "plan_hash": row.plan_hash, "before": before}
        record(s, actor=actor, action="attempt.verdict", object_kind="attempt", object_id=row.id, data=data)
    engagement = engagements.engagement(s, row.engagement_id)
    if engagement is None:
        raise NotFound("no_such_engagement", N_("There is no engagement {id}."), id=row.engagement_id)
    facts = engagement_facts.settle(s, engagement, actor)
    keep_baseline(s, engagement, row, document, facts, actor)
    _halt(s, engagement, facts, actor)


def keep_baseline(s: Session, engagement: Engagement, attempt: Attempt, document: dict[str, Any], facts: Facts, actor: Actor) -> None:
    """Freeze the baseline of a G2 that passed, and withdraw it when that G2 passes no more; other gates freeze nothing.

    G3's own interleaved baseline must agree with the frozen one, so a judgement of G3 that rests on another is out of date
    (gates.pipeline_facts.AttemptFacts.outdated).
    """
    frozen = engagement.g2_baseline
    if attempt.gate != "G2" or (frozen is not None and frozen.get("attempt") != attempt.id):
        return
    passed = any(a.id == attempt.id and a.passed for a in facts.attempts)
    told = (document.get("facts") or {}).get("baseline") if passed else None
    fresh = {**told, "attempt": attempt.id} if told else None
    if fresh == frozen:
        return
    engagement.g2_baseline = fresh
    s.flush()
    action = "engagement.freeze_baseline" if fresh else "engagement.withdraw_baseline"
    data = {"attempt": attempt.id, "hash": (fresh or frozen or {}).get("hash", ""), "before": (frozen or {}).get("hash", "")}
    record(s, actor=actor, action=action, object_kind="engagement", object_id=engagement.id, data=data)
    engagement_facts.settle(s, engagement, actor)


def _halt(s: Session, engagement: Engagement, facts: Facts, actor: Actor) -> None:
    """Cancel an attempt that goes on elsewhere when a fail stops the engagement: a stop holds at once."""
    running, stop = facts.active(), facts.stopped_by()
    if engagement.state != State.STOPPED or running is None or stop is None or running.id == stop.id:
        return
    row = repository.attempt(s, running.id)
    if row is None or row.cancel_requested_at is not None:
        return
    row.cancel_requested_at, row.next_due_at, row.last_enqueued_at = now(), database_now(s), None
    reason = engagement_state(facts)[1]
    row.cancel_reason = kept_reason(reason)
    s.flush()
    data = {"reason": audited_reason(reason), "stopped_by": stop.id}
    record(s, actor=actor, action="attempt.request_cancel", object_kind="attempt", object_id=row.id, data=data)
