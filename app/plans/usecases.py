"""Plans: made canonical, hashed, revised, sealed. A sealed revision never changes; a change is a new one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.audit.chain import record
from app.engagements import facts as engagement_facts
from app.engagements.access import find
from app.engagements.file import pointer
from app.engagements.models import Engagement
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import BadInput, Conflict, FieldProblem, NotFound, Refused
from app.kit.i18n import N_
from app.plans import repository
from app.plans.models import PlanRevision
from app.plans.reading import plan_of
from gates.pipeline import engagement_state
from gates.pipeline_facts import State
from gates.plan import InvalidPlan, Plan, load_plan


def first_revision(s: Session, *, engagement_id: str, plan: Plan, actor: Actor) -> PlanRevision:
    """Keep the plan of a new engagement."""
    return _keep(s, engagement_id, plan, plan.header.revision, actor)


def add_revision(s: Session, *, engagement_id: str, differences: Mapping[str, Any], actor: Actor, base: str = "") -> PlanRevision:
    """Change the plan: differences from the present revision become a new one, to be approved anew by both parties.

    `base` is the hash of the revision that the change was made from, when the caller looked at one. Raises BadInput that names each
    field; Refused while an attempt goes on or when the engagement has ended; Conflict when there is a newer revision than `base`.
    """
    require(actor, Permission.REVISE_PLAN)
    engagement = find(s, engagement_id, actor, lock=True)
    check_revisable(s, engagement)
    before = current(s, engagement_id)
    if base and base != before.hash:
        raise Conflict(
            "changed_since", N_("The plan was revised since you looked: revision {number} is the newest. Look again."), number=before.revision
        )
    number = before.revision + 1
    plan = changed_plan(before, differences)
    plan = dataclasses.replace(plan, header=dataclasses.replace(plan.header, revision=number))
    kept = _keep(s, engagement_id, plan, number, actor)
    engagement_facts.settle(s, engagement, actor)
    return kept


def check_revisable(s: Session, engagement: Engagement) -> None:
    """Raise Refused while an attempt goes on or when the engagement has ended."""
    facts = engagement_facts.gather(s, engagement)
    state, why = engagement_state(facts)
    if state not in (State.DRAFT, State.ACTIVE):
        raise Refused(str(state), why)
    if facts.active():
        raise Refused("attempt_active", N_("The plan cannot change while an attempt is going on. Wait for its end, or cancel it."))


def changed_plan(before: PlanRevision, differences: Mapping[str, Any]) -> Plan:
    """Return the plan that differences make of a revision. Raises BadInput that names each field, Refused when nothing differs."""
    try:
        plan = load_plan(_merge(json.loads(before.canonical), differences))
    except InvalidPlan as error:
        raise BadInput("bad_plan", N_("The plan cannot be used. Problems: {count}."), pointer_problems(error), count=len(error.problems)) from None
    if dataclasses.replace(plan, header=plan_of(before).header) == plan_of(before):
        raise Refused("plan_unchanged", N_("The plan says this already; nothing was changed."))
    return plan


def current(s: Session, engagement_id: str) -> PlanRevision:
    """Return the newest revision. Raises NotFound for an unknown engagement."""
    found = repository.revisions(s, engagement_id)
    if not found:
        raise NotFound("no_plan", N_("There is no plan for the engagement {id}."), id=engagement_id)
    return found[-1]


def canonical_of(s: Session, *, engagement_id: str, number: int, actor: Actor) -> tuple[str, str]:
    """Return a file name and the canonical JSON of a revision: SHA-256 of its UTF-8 bytes is the hash that both parties approve."""
    require(actor, Permission.VIEW)
    engagement = find(s, engagement_id, actor)
    found = next((r for r in repository.revisions(s, engagement_id) if r.revision == number), None)
    if found is None:
        raise NotFound("no_such_revision", N_("The plan of {engagement} has no revision {number}."), engagement=engagement.code, number=number)
    return f"{engagement.code}-plan-{number}.json", found.canonical


def seal(s: Session, revision: PlanRevision, actor: Actor) -> None:
    """Seal a revision: the effect of both parties' approval of its hash."""
    if revision.sealed_at is None:
        revision.sealed_at = now()
        s.flush()
        record(s, actor=actor, action="plan.seal", object_kind="plan", object_id=revision.id, data={"hash": revision.hash})


def _keep(s: Session, engagement_id: str, plan: Plan, number: int, actor: Actor) -> PlanRevision:
    revision = PlanRevision(
        id=new_id(),
        engagement_id=engagement_id,
        revision=number,
        canonical=plan.canonical(),
        hash=plan.hash,
        created_by=actor.user_id,
        created_at=now(),
    )
    s.add(revision)
    s.flush()
    record(s, actor=actor, action="plan.add", object_kind="plan", object_id=revision.id, data={"hash": plan.hash, "revision": number})
    return revision


def pointer_problems(error: InvalidPlan) -> list[FieldProblem]:
    """Return the problems of a plan with JSON pointers."""
    return [FieldProblem(pointer(p.path), p.message) for p in error.problems]


def _merge(base: Any, over: Any) -> Any:
    """Merge maps key by key; lists and values replace as a whole."""
    if not (isinstance(base, Mapping) and isinstance(over, Mapping)):
        return over
    return {**base, **{key: _merge(base[key], value) if key in base else value for key, value in over.items()}}
