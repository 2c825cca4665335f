"""What happens when both parties agree, in the transaction of the second approval."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.approvals import repository
from app.approvals.objects import Item
from app.attempts import repository as attempts
from app.attempts import revisions as judgements
from app.attempts.conclude import keep_baseline
from app.attempts.judging import judge_on_agreement
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.packing import repository as packing
from app.packing.usecases import put_in_force
from app.plans import repository as plans
from app.plans.usecases import seal


def follow(s: Session, engagement: Engagement, item: Item, actor: Actor) -> None:
    """Let the effect follow if both parties now agree on the object, and settle the engagement in any case."""
    agreed = engagement_facts.decisions(repository.approvals_for(s, item.kind, item.id), item.kind, item.id).agreed
    if agreed and item.kind == "plan" and (revision := plans.revision(s, item.id)):
        seal(s, revision, actor)
    if agreed and item.kind == "packing" and (proposed := packing.revision(s, item.id)):
        put_in_force(s, engagement, proposed, actor)
    # Consent, a sign-off, a rig cause, a lifted stop, a closing and a wipe take effect by themselves: the rules read the approvals.
    facts = engagement_facts.settle(s, engagement, actor)
    if item.kind == "conditional" and (attempt := attempts.attempt(s, item.id)) and (judged := judgements.newest(s, item.id)):
        keep_baseline(s, engagement, attempt, judged.document, facts, actor)
    if agreed and item.kind == "soak_cause" and item.attempt_id:
        judge_on_agreement(s, attempt_id=item.attempt_id, why=item.title, actor=actor)
