"""What web, API and CLI show of engagements, made once: no face computes a number of its own (docs/architecture.md)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.approvals import repository as approvals
from app.approvals.models import Approval
from app.approvals.views import approval_view
from app.attempts import repository as attempts
from app.attempts import revisions as judgements
from app.attempts.models import Attempt
from app.attempts.views import gate_title, newest_reports
from app.deviations.views import views_of
from app.engagements import access, cold_proof, repository
from app.engagements.facts import facts_of
from app.engagements.models import Engagement
from app.kit.clock import now, stamp
from app.plans import repository as plans
from app.plans.models import PlanRevision
from app.plans.reading import plan_of
from gates.g1.packing import packing_warning
from gates.pipeline import engagement_state, gate_state, may_start, next_action
from gates.pipeline_facts import GATES, Action, Facts, GateState
from gates.plan import Plan
from gates.text import Text
from gates.time_needed import refusal as time_refusal
from gates.time_needed import shown as time_shown

# Which permission brings the next action on, and what is said to who lacks it.
NEEDS = {
    "seal": Permission.APPROVE,
    "consent": Permission.APPROVE,
    "sign_off": Permission.APPROVE,
    "lift": Permission.APPROVE,
    "close": Permission.APPROVE,
    "start": Permission.START_ATTEMPT,
    "retry": Permission.RETRY_ATTEMPT,
    "extend": Permission.START_ATTEMPT,
    "judge": Permission.JUDGE,
    "form": Permission.SUBMIT_FORM,
    "follow": Permission.VIEW,
}
NOT_YOURS = {
    Permission.APPROVE: Text("An approver of each party decides this at the web page.", "由双方各一名确认人在网页上决定。"),
    Permission.START_ATTEMPT: Text("An engineer starts it.", "由工程师启动。"),
    Permission.RETRY_ATTEMPT: Text("An engineer retries it.", "由工程师重试。"),
    Permission.JUDGE: Text("An engineer has it judged again.", "由工程师发起重新判定。"),
    Permission.SUBMIT_FORM: Text("An engineer fills in the form.", "由工程师填写表单。"),
    Permission.VIEW: Text("You may not see this.", "您无权查看。"),
}


def board(s: Session, *, actor: Actor) -> list[dict[str, Any]]:
    """Return all engagements that the actor sees, the newest first, each with its four gates and the next action."""
    require(actor, Permission.VIEW)
    return [_item(s, e, actor)[0] for e in repository.engagements(s) if access.sees(actor, e)]


def overview(s: Session, *, engagement_id: str, actor: Actor) -> dict[str, Any]:
    """Return everything that a page shows of one engagement."""
    require(actor, Permission.VIEW)
    engagement = access.find(s, engagement_id, actor)
    item, revisions, tries, given, facts = _item(s, engagement, actor)
    warned = packing_warning(engagement.order, engagement.packing_list)
    using = {a.id for a in facts.attempts if a.uses_up and not a.rehearsal}
    plan, revision = plan_of(revisions[-1]), revisions[-1]
    reports = newest_reports(s, [a.id for a in tries])
    return {
        **item,
        "people": engagement.people,
        "order": engagement.order,
        "packing_list": engagement.packing_list,
        "packing_warning": warned.json() if warned else None,
        "targets": engagement.targets,
        "source_yaml": engagement.source_yaml,
        "g2_baseline": engagement.g2_baseline,
        "plan": {
            "id": revision.id,
            "revision": revision.revision,
            "hash": revision.hash,
            "sealed_at": stamp(revision.sealed_at),
            "data": json.loads(revision.canonical),
            "approvals": [approval_view(a) for a in given if (a.object_kind, a.object_id) == ("plan", revision.id)],
            "earlier": [{"id": r.id, "revision": r.revision, "hash": r.hash, "sealed_at": stamp(r.sealed_at)} for r in revisions[:-1]],
        },
        "calendar": calendar(plan),
        "attempts": [_attempt(a, reports, uses_up=a.id in using) for a in tries],
        "approvals": [approval_view(a) for a in given],
        "deviations": views_of(s, engagement.id, given),
    }


def calendar(plan: Plan) -> dict[str, Any]:
    """Return the planned weeks of each gate, one after the other, with dates when the plan names a start."""
    begin = date.fromisoformat(plan.calendar.start) if plan.calendar.start else None
    rows: list[dict[str, Any]] = []
    for gate in GATES:
        weeks = plan.calendar.weeks[gate]
        end = begin + timedelta(weeks=weeks) if begin else None
        last = end - timedelta(days=1) if end else None
        rows.append({"gate": gate, "weeks": weeks, "from": begin.isoformat() if begin else None, "to": last.isoformat() if last else None})
        begin = end
    return {"start": plan.calendar.start, "weeks": sum(row["weeks"] for row in rows), "gates": rows}


def _item(s: Session, engagement: Engagement, actor: Actor) -> tuple[dict[str, Any], list[PlanRevision], list[Attempt], list[Approval], Facts]:
    """Return an engagement's item of the board, and the rows it was made from."""
    revisions = plans.revisions(s, engagement.id)
    tries = attempts.attempts_of(s, engagement.id)
    given = approvals.approvals_of(s, engagement.id)
    facts = facts_of(engagement, revisions, tries, given, judgements.in_force(s, [a.id for a in tries]))
    plan = plan_of(revisions[-1])
    # Asked of the rules, not of the stored column: an attempt that was canceled a moment ago may have been the last one.
    state, why = engagement_state(facts)
    item = {
        "id": engagement.id,
        "code": engagement.code,
        "customer": engagement.customer,
        "vendor": engagement.vendor,
        "site": engagement.site,
        "contract": engagement.contract,
        "state": str(state),
        "state_reason": why.json(),
        "simulated": bool(engagement.targets["simulated"]),
        "created_at": stamp(engagement.created_at),
        "version": engagement.version,
        "gates": [_gate(facts, gate, plan, tries) for gate in GATES],
        "next": _next(s, _timed(next_action(facts), plan, engagement), actor),
    }
    return item, revisions, tries, given, facts


def _gate(facts: Facts, gate: str, plan: Plan, tries: list[Attempt]) -> dict[str, Any]:
    """Return where one gate stands."""
    mine = [a for a in tries if a.gate == gate]
    formal = [a for a in mine if not a.rehearsal]
    newest = formal[-1] if formal else None
    judged = next((a for a in reversed(formal) if a.verdict), None)
    state = gate_state(facts, gate)
    refusal = may_start(facts, gate) if state is not GateState.PASSED else None
    return {
        "gate": gate,
        "title": gate_title(gate),
        "state": str(state),
        "reason": refusal.text.json() if refusal else None,
        "blocked_by": {"code": refusal.code, **refusal.text.json()} if refusal else None,
        "verdict": judged.verdict if judged else None,
        "because": (judged.because or []) if judged else [],
        "status": newest.status if newest else None,
        "attempt_id": newest.id if newest else None,
        "attempts_used": facts.used(gate),
        "attempts_max": facts.policy.attempts[gate],
        "attempts_left": facts.left(gate),
        "rehearsals": len(mine) - len(formal),
        "weeks": plan.calendar.weeks[gate],
        "days_planned": 7 * plan.calendar.weeks[gate],
        "on_fail": plan.policy.on_fail[gate],
        "sign_off": plan.policy.sign_off[gate],
    }


def _timed(action: Action, plan: Plan, engagement: Engagement) -> Action:
    """Return the action with how long the gate takes at least; a start that cannot end within the calendar says so instead."""
    if action.kind != "start" or action.gate is None:
        return action
    if refused := time_refusal(plan, action.gate, engagement.g2_baseline, now()):
        return replace(action, reason=refused)
    if unproven := cold_proof.refusal(plan, action.gate, engagement.targets):
        return replace(action, reason=unproven)
    told = time_shown(plan, action.gate, engagement.g2_baseline)
    return replace(action, reason=Text(f"{action.reason.en} {told.en}", action.reason.zh + told.zh)) if told else action


def _next(s: Session, action: Action, actor: Actor) -> dict[str, Any]:
    """Return the next action, and whether this person can take it."""
    permission = NEEDS.get(action.kind)
    enabled = permission is not None and actor.may(permission)
    steps = attempts.steps_of(s, action.attempt_id) if action.kind == "form" and action.attempt_id else []
    waiting = next((step.id for step in steps if step.status == "waiting"), None)
    return {
        "kind": action.kind,
        "gate": action.gate,
        "enabled": enabled,
        "why_not": None if enabled or permission is None else NOT_YOURS[permission].json(),
        "label": action.label.json(),
        "reason": action.reason.json(),
        "attempt_id": action.attempt_id,
        "step_id": waiting,
    }


def _attempt(a: Attempt, reports: dict[str, Any], *, uses_up: bool) -> dict[str, Any]:
    by_language = reports.get(a.id, {})
    return {
        "id": a.id,
        "gate": a.gate,
        "number": a.number,
        "rehearsal": a.rehearsal,
        "status": a.status,
        "verdict": a.verdict,
        "because": a.because or [],
        "problem": a.problem,
        "counted": uses_up,
        "uses_up": uses_up,
        "rig_cause": a.rig_cause,
        "plan_hash": a.plan_hash,
        "created_at": stamp(a.created_at),
        "started_at": stamp(a.started_at),
        "finished_at": stamp(a.finished_at),
        "report_ids": {language: by_language[language].id if language in by_language else None for language in ("zh-CN", "en")},
    }
