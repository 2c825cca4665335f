"""What follows from a verdict, in the transaction that stores it: a verdict without its consequence cannot exist."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor
from app.attempts import repository
from app.attempts.models import Attempt
from app.audit.chain import record
from app.engagements import facts as engagement_facts
from app.engagements import repository as engagements
from app.engagements.models import Engagement
from app.kit.errors import NotFound, Refused
from app.kit.i18n import N_
from gates.model import Verdict


def conclude(s: Session, attempt: Attempt | str, document: dict[str, Any], actor: Actor = SYSTEM) -> None:
    """Put the verdict on the attempt, freeze the baseline of a passed G2, and let the plan's consequence follow.

    Judging the same again changes nothing; a different verdict is refused here, since re-judging only adds a revision.
    """
    row = repository.attempt(s, attempt) if isinstance(attempt, str) else attempt
    if row is None:
        raise NotFound("no_such_attempt", N_("There is no attempt {id}."), id=str(attempt))
    if row.rehearsal:
        raise Refused("rehearsal", N_("A rehearsal is never judged."))
    verdict = Verdict(document["verdict"])
    if row.verdict not in (None, verdict):
        raise Refused(
            "verdict_stands", N_("The attempt was concluded as {stands}; a new judgement adds a revision and replaces nothing."), stands=row.verdict
        )
    if row.verdict is None:
        row.verdict, row.because = str(verdict), [str(reason) for reason in document.get("because") or []]
        s.flush()
        data = {"gate": row.gate, "number": row.number, "verdict": str(verdict), "because": row.because, "plan_hash": row.plan_hash}
        record(s, actor=actor, action="attempt.verdict", object_kind="attempt", object_id=row.id, data=data)
    engagement = engagements.engagement(s, row.engagement_id)
    if engagement is None:
        raise NotFound("no_such_engagement", N_("There is no engagement {id}."), id=row.engagement_id)
    facts = engagement_facts.settle(s, engagement, actor)
    if any(a.id == row.id and a.passed for a in facts.attempts):
        freeze_baseline(s, engagement, row, document, actor)


def freeze_baseline(s: Session, engagement: Engagement, attempt: Attempt, document: dict[str, Any], actor: Actor) -> None:
    """Keep the baseline of a G2 that passed: G3's own interleaved baseline must agree with it. Other gates freeze nothing."""
    baseline = (document.get("facts") or {}).get("baseline")
    if attempt.gate != "G2" or not baseline or engagement.g2_baseline:
        return
    engagement.g2_baseline = {**baseline, "attempt": attempt.id}
    s.flush()
    data = {"attempt": attempt.id, "hash": baseline.get("hash", "")}
    record(s, actor=actor, action="engagement.freeze_baseline", object_kind="engagement", object_id=engagement.id, data=data)
