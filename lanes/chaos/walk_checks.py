"""What the world outside saw of an engagement that went through all gates: one verdict and one set of reports a gate, and no gate before its time.

The order is told by the audit chain and by no clock, since the lane sets the clock.
"""

from __future__ import annotations

from collections import Counter

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.approvals.models import Approval
from app.attempts.models import Attempt, VerdictRevision
from app.audit.models import AuditRow
from app.engagements.models import Engagement
from app.kit.db import read_session
from app.reports.models import Report
from gates.registry import GATES
from lanes.chaos.findings import DOUBLED, LOST, WRONG, Finding
from lanes.chaos.walk import Walk

PARTIES = {"vendor", "customer"}


def of_walk(walk: Walk) -> list[Finding]:
    """Return all that is wrong with an engagement that should have come to its end. Its attempts are looked at by themselves (checks.py)."""
    with read_session() as s:
        engagement = s.get_one(Engagement, walk.id)
        attempts = {row.gate: row for row in s.scalars(select(Attempt).where(Attempt.engagement_id == walk.id))}
        count = Counter(s.scalars(select(Attempt.gate).where(Attempt.engagement_id == walk.id)))
        found = [*walk.findings, *(Finding(DOUBLED, f"{gate} has {n} attempts") for gate, n in count.items() if n > 1)]
        found += [Finding(LOST, f"{gate} was never started") for gate in GATES if gate not in attempts]
        if not found and (engagement.state != "concluded" or not walk.over):
            found.append(Finding(LOST, f"the engagement did not come to its end: {engagement.state}"))
        for gate, attempt in attempts.items():
            found += _of_gate(s, gate, attempt)
        return found + _order(s, walk, attempts)


def _of_gate(s: Session, gate: str, attempt: Attempt) -> list[Finding]:
    """Hold verdicts, reports and signatures of one gate against one each."""
    verdicts = list(s.scalars(select(VerdictRevision.verdict).where(VerdictRevision.attempt_id == attempt.id)))
    reports = sorted(s.scalars(select(Report.language).where(Report.attempt_id == attempt.id)))
    signed = sorted(s.scalars(select(Approval.party).where(Approval.object_kind == "sign_off", Approval.object_id == attempt.id)))
    found = []
    if verdicts != ["pass"]:
        found.append(Finding(DOUBLED if len(verdicts) > 1 else LOST if not verdicts else WRONG, f"{gate} has the verdicts {verdicts}"))
    for what, seen, wanted in (("reports", reports, ["en", "zh-CN"]), ("signatures", signed, sorted(PARTIES))):
        if seen != wanted:
            found.append(Finding(DOUBLED if len(seen) > len(wanted) else LOST, f"{gate} has the {what} {seen}"))
    return found


def _order(s: Session, walk: Walk, attempts: dict[str, Attempt]) -> list[Finding]:
    """Walk the audit chain: a gate is created behind the verdict of the one before and both signatures on it, the first behind the sealing."""
    of = {row.id: gate for gate, row in attempts.items()}
    plans = set(s.scalars(select(Approval.object_id).where(Approval.engagement_id == walk.id, Approval.object_kind == "plan")))
    decided: dict[str, set[str]] = {gate: set() for gate in ("plan", *GATES)}
    judged, found = {"plan"}, []
    for row in s.scalars(select(AuditRow).order_by(AuditRow.seq)):
        if row.action == "approval.approve" and row.data["object_kind"] in ("plan", "sign_off"):
            gate = "plan" if row.data["object_id"] in plans else of.get(row.data["object_id"], "")
            decided.get(gate, set()).add(row.data["party"])
        elif row.action == "attempt.verdict" and row.object_id in of:
            judged.add(of[row.object_id])
        elif row.action == "attempt.create" and row.object_id in of:
            gate = of[row.object_id]
            before = ("plan", *GATES)[list(GATES).index(gate)]
            if before not in judged or decided[before] != PARTIES:
                found.append(Finding(WRONG, f"{gate} was created before {before} was decided: by {sorted(decided[before])}"))
    return found
