"""Gather what the rules of gates.pipeline need to know, and keep the engagement's stored state in step with what they say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set

from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.approvals import repository as approvals
from app.approvals.models import Approval
from app.attempts import repository as attempts
from app.attempts import revisions as judgements
from app.attempts.models import Attempt
from app.attempts.revisions import InForce
from app.audit.chain import record
from app.engagements.models import Engagement
from app.plans import repository as plans
from app.plans.models import PlanRevision
from app.plans.reading import plan_of
from gates.model import Verdict
from gates.pipeline import engagement_state
from gates.pipeline_facts import AttemptFacts, Decisions, Facts, Policy
from gates.transitions import RunStatus


def gather(s: Session, engagement: Engagement) -> Facts:
    """Return the facts of an engagement as they stand in this transaction."""
    revisions = plans.revisions(s, engagement.id)
    tries = attempts.attempts_of(s, engagement.id)
    judged = judgements.in_force(s, [a.id for a in tries])
    return facts_of(engagement, revisions, tries, approvals.approvals_of(s, engagement.id), judged)


def facts_of(
    engagement: Engagement,
    revisions: Sequence[PlanRevision],
    tries: Sequence[Attempt],
    given: Sequence[Approval],
    judged: Mapping[str, InForce],
) -> Facts:
    """Return the facts that rows say. A decision about a verdict counts only while that verdict stands (`judged`)."""
    by_id = {revision.id: revision for revision in revisions}
    sealed = [revision for revision in revisions if revision.sealed_at]
    rules = plan_of(sealed[-1] if sealed else revisions[-1])

    frozen = str((engagement.g2_baseline or {}).get("hash") or "")

    def attempt_facts(a: Attempt) -> AttemptFacts:
        standing = judged.get(a.id, InForce())
        return AttemptFacts(
            id=a.id,
            gate=a.gate,
            number=a.number,
            rehearsal=a.rehearsal,
            status=RunStatus(a.status),
            counted=a.counted_at is not None or a.verdict is not None,
            verdict=Verdict(a.verdict) if a.verdict else None,
            failed=standing.failed,
            may_extend_by=a.may_extend_by,
            extended=a.extension is not None,
            replaced=bool(sealed) and sealed[-1].revision > by_id[a.plan_id].revision,
            on_fail=plan_of(by_id[a.plan_id]).policy.on_fail[a.gate],
            rig_cause=decisions(given, "rig_cause", a.id),
            outdated=a.gate == "G3" and a.verdict is not None and standing.g2_baseline not in (None, frozen),
            consent=decisions(given, "conditional", a.id, standing.verdict_hashes),
            sign_off=decisions(given, "sign_off", a.id, standing.manifest_hashes),
            lift=decisions(given, "stop_loss", a.id, standing.lift_hashes),
        )

    return Facts(
        policy=Policy(rules.policy.attempts, rules.policy.sign_off),
        sealed=revisions[-1].sealed_at is not None,
        ever_sealed=bool(sealed),
        closed=decisions(given, "close", engagement.id).agreed,
        attempts=tuple(attempt_facts(a) for a in tries),
    )


def decisions(given: Sequence[Approval], kind: str, object_id: str, standing: Set[str] | None = None) -> Decisions:
    """Return what the parties said about an object.

    Both must have said it about the same hash: of a plan, verdict or report that was made anew, older words do not count
    together with newer ones. `standing` are the hashes that name what holds now, all of them the same in substance: words about any
    other count no more. Without it, what was once agreed stays agreed. A person's newest word about a hash is what that person says:
    who rejected and then approves takes the rejection back.
    """
    by_hash: dict[str, dict[str, Approval]] = {}
    for a in given:
        if (a.object_kind, a.object_id) != (kind, object_id):
            continue
        if standing is not None and a.object_hash not in standing:
            continue
        key = a.object_hash if standing is None else ""
        by_hash[key] = {**by_hash.pop(key, {}), a.user_id: a}
    said = [_said(by_person.values()) for by_person in by_hash.values()]
    agreed = next((d for d in said if d.agreed), None)
    return agreed or (said[-1] if said else Decisions())


def _said(newest: Collection[Approval]) -> Decisions:
    approved, rejected = (frozenset(a.party for a in newest if a.decision == word) for word in ("approve", "reject"))
    return Decisions(approved, rejected)


def settle(s: Session, engagement: Engagement, actor: Actor) -> Facts:
    """Store the state that the rules give, in the transaction of the change that led to it; returns the facts."""
    s.flush()
    facts = gather(s, engagement)
    state, why = engagement_state(facts)
    if engagement.state != state or engagement.state_reason != why.json():
        before, engagement.state, engagement.state_reason = engagement.state, str(state), why.json()
        if before != state:
            data = {"from": before, "to": str(state), "reason": why.json()}
            record(s, actor=actor, action="engagement.state", object_kind="engagement", object_id=engagement.id, data=data)
    engagement.version += 1
    s.flush()
    return facts
