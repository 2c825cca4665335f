"""Reads what a report rests on out of the features' tables, and keeps the reports' own rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.approvals import repository as approvals
from app.approvals.models import Approval
from app.attempts.forms import fields_of
from app.attempts.models import Attempt, Step, VerdictRevision
from app.attempts.moves import shown_reason
from app.attempts.revisions import InForce, changes, in_force
from app.deviations import views as deviation_views
from app.engagements import facts as engagement_facts
from app.engagements.facts import decisions
from app.engagements.models import Engagement
from app.kit.errors import NotFound
from app.kit.i18n import N_
from app.packing import repository as packing
from app.plans.models import PlanRevision
from app.reports.facts import Facts
from app.reports.models import Report
from app.reports.register import belongs
from gates.model import StepKind

_EXTENSION = ("pairs", "at", "by", "party", "said", "why", "from_verdict", "judged")
_OVER = ("finished", "canceled", "error")


def reports_of(s: Session, attempt_id: str) -> list[Report]:
    """Return the reports of an attempt in both languages, the oldest revision first."""
    query = select(Report).where(Report.attempt_id == attempt_id).order_by(Report.revision, Report.language)
    return list(s.execute(query).scalars())


def report(s: Session, report_id: str) -> Report:
    """Return a report, or raise NotFound."""
    found = s.get(Report, report_id)
    if found is None:
        raise NotFound("no_such_report", N_("There is no report {id}."), id=report_id)
    return found


def gather(s: Session, attempt_id: str, manifest: dict[str, Any]) -> Facts:
    """Gather the facts of an attempt. Raises NotFound for an unknown attempt."""
    attempt = s.get(Attempt, attempt_id)
    if attempt is None:
        raise NotFound("no_such_attempt", N_("There is no attempt {id}."), id=attempt_id)
    engagement = s.get_one(Engagement, attempt.engagement_id)
    plan = s.get_one(PlanRevision, attempt.plan_id)
    judged = _verdicts(s, [attempt_id])
    tries = list(
        s.execute(
            select(Attempt).where(Attempt.engagement_id == engagement.id, Attempt.gate == attempt.gate).order_by(Attempt.created_at, Attempt.id)
        ).scalars()
    )
    of_tries = _verdicts(s, [a.id for a in tries])
    verdicts = {row.attempt_id: row for row in of_tries}
    firsts = {row.attempt_id: row for row in reversed(of_tries)}
    standing = in_force(s, [attempt.id]).get(attempt.id, InForce())
    signed = decisions(approvals.approvals_of(s, engagement.id), "sign_off", attempt.id, standing.manifest_hashes)
    newest = judged[-1] if judged else None
    register = _register(s, engagement, attempt)
    excused = {a.id for a in engagement_facts.gather(s, engagement).attempts if a.excused}
    return Facts(
        engagement=_engagement(engagement, packing.list_of(s, engagement, attempt.packing_number)),
        plan=json.loads(plan.canonical),
        plan_hash=attempt.plan_hash,
        plan_revision=plan.revision,
        sealed_at=_iso(plan.sealed_at),
        attempt=_attempt(attempt, verdicts.get(attempt.id), firsts.get(attempt.id), _ending(attempt, of_tries), excused),
        attempts=[_attempt(a, verdicts.get(a.id), firsts.get(a.id), _ending(a, of_tries), excused) for a in tries],
        verdict={**_verdict(newest), "manifest_hash": newest.manifest_hash, "document": newest.document} if newest else None,
        verdicts=[
            {**_verdict(row), "changed": changes(before.document, row.document) if before else []}
            for before, row in zip((None, *judged), judged, strict=False)
        ],
        manifest=manifest,
        approvals=_approvals(s, engagement, attempt, plan, judged, [entry["id"] for entry in register]),
        forms=_forms(s, attempt_id, manifest),
        deviations=register,
        signed=signed.agreed,
        since=_iso(standing.since),
    )


def _verdicts(s: Session, attempt_ids: Iterable[str]) -> list[VerdictRevision]:
    query = select(VerdictRevision).where(VerdictRevision.attempt_id.in_(list(attempt_ids))).order_by(VerdictRevision.revision)
    return list(s.execute(query).scalars())


def _engagement(row: Engagement, packed: list[Any]) -> dict[str, Any]:
    """Return what a report tells of the engagement, with the packing list that the attempt began under.

    Its state is left out: it moves on after the report was made.
    """
    targets = row.targets or {}
    hosts = {
        name: {key: data.get(key) for key in ("groups", "address", "connection") if data.get(key)}
        for name, data in (targets.get("hosts") or {}).items()
    }
    return {
        "code": row.code,
        "customer": row.customer,
        "vendor": row.vendor,
        "site": row.site,
        "contract": row.contract,
        "people": row.people or {},
        "order": row.order or {},
        "packing_list": packed,
        "targets": {"simulated": bool(targets.get("simulated")), "hosts": hosts},
    }


def _ending(row: Attempt, judged: Iterable[VerdictRevision]) -> VerdictRevision | None:
    """Return the judgement that ended an attempt: its first, or the first of all runs when it was extended. Judging it again moves no end."""
    wanted = row.extension["judged"] if row.extension else None
    mine = [v for v in judged if v.attempt_id == row.id]
    return next((v for v in mine if v.hash == wanted), mine[0] if mine else None)


def _attempt(
    row: Attempt, judged: VerdictRevision | None, first: VerdictRevision | None, ending: VerdictRevision | None, excused: Set[str]
) -> dict[str, Any]:
    """Return an attempt as a report tells it.

    The report is written by the attempt's own last step: once the attempt is judged, that writing is not part of its story, and its
    end is the time of the judgement that ended it. So the report says the same while and after it is written.
    An attempt that measured nothing counts from its `first` judgement (a gate without measured steps, as G1), a rehearsal never, and one that
    a rig cause took out (`excused`, told only where it is so: what older reports rest on keeps its hash) no more.
    """
    status, ended = row.status, row.finished_at
    going_on = row.extension is not None and row.extension["judged"] is None  # its newest judgement is the one before the extension
    if judged is not None and not going_on and (status not in _OVER or status == "finished"):
        status, ended = "finished", (ending or judged).at
    return {
        "id": row.id,
        "gate": row.gate,
        "number": row.number,
        "rehearsal": row.rehearsal,
        "status": status,
        "verdict": row.verdict if going_on else None if row.rehearsal or judged is None else judged.verdict,
        "because": list(judged.document.get("because") or []) if judged is not None else [],
        "problem": row.problem if status == "error" else None,
        "cancel_reason": shown_reason(row.cancel_reason) if status == "canceled" else "",
        "rig_cause": row.rig_cause,
        "extension": {key: row.extension[key] for key in _EXTENSION} if row.extension else None,
        "plan_hash": row.plan_hash,
        "counted_at": _iso(row.counted_at or (first.at if first is not None and not row.rehearsal else None)),
        **({"excused": True} if row.id in excused else {}),
        "created_at": _iso(row.created_at),
        "started_at": _iso(row.started_at),
        "finished_at": _iso(ended),
    }


def _verdict(row: VerdictRevision) -> dict[str, Any]:
    return {"revision": row.revision, "verdict": row.verdict, "hash": row.hash, "at": _iso(row.at), "judge_version": row.judge_version}


def _approvals(
    s: Session, engagement: Engagement, attempt: Attempt, plan: PlanRevision, judged: list[VerdictRevision], waivers: list[str]
) -> list[dict[str, Any]]:
    """Return the approvals of this plan, attempt, verdicts, reports and waivers, and those that lift or close; oldest first."""
    objects = [attempt.id, plan.id, *waivers, *(v.id for v in judged), *(r.id for r in reports_of(s, attempt.id))]
    hashes = [plan.hash, *(v.hash for v in judged), *(v.manifest_hash for v in judged)]
    query = (
        select(Approval)
        .where(
            Approval.engagement_id == engagement.id,
            or_(Approval.object_id.in_(objects), Approval.object_hash.in_(hashes), Approval.object_kind.in_(("stop_loss", "close"))),
        )
        .order_by(Approval.at, Approval.id)
    )
    keys = ("id", "object_kind", "object_id", "object_hash", "party", "person", "role", "decision", "comment", "scan_sha256")
    return [{**{key: getattr(row, key) for key in keys}, "at": _iso(row.at)} for row in s.execute(query).scalars()]


def _register(s: Session, engagement: Engagement, attempt: Attempt) -> list[dict[str, Any]]:
    """Return the deviations, waivers and punch items that belong to this gate's report. What only time changes is no fact of a report."""
    shown = deviation_views.views_of(s, engagement.id, approvals.approvals_of(s, engagement.id))
    return [{k: v for k, v in entry.items() if k != "overdue"} for entry in shown if belongs(entry, attempt.gate)]


def _forms(s: Session, attempt_id: str, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the forms that people filled in, in the words of their declared fields, each photo with its hash in the evidence."""
    hashes = {str(file["path"]): str(file["sha256"]) for file in manifest.get("files") or []}
    query = select(Step).where(Step.attempt_id == attempt_id, Step.kind == str(StepKind.MANUAL)).order_by(Step.position)
    forms = []
    for step in s.execute(query).scalars():
        result = step.result or {}
        if result:
            photos = [
                {
                    "name": str(name),
                    "sha256": next((h for path, h in hashes.items() if path.startswith(f"evidence/{step.key}/") and path.endswith(f"/{name}")), ""),
                }
                for name in result.get("photos") or []
            ]
            form, fields = dict(result.get("form") or {}), fields_of((step.spec or {}).get("params") or {})
            entered = str(result.get("entered_by") or "")
            forms.append({"title": step.title, "fields": fields, "form": form, "photos": photos, "entered_by": entered})
    return forms


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()
