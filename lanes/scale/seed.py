"""Soaks under way, put into the database as the engine leaves them between two polls: engagement, sealed plan, attempt of G4, steps, locks."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Step
from app.engagements.models import Engagement
from app.engine.models import HostLock
from app.engine.policy import soak_poll_s
from app.kit.db import database_now, write_session
from app.plans.models import PlanRevision
from app.settings import settings
from gates.g4_soak import GATE
from gates.plan import Plan, parse_plan

HOST = "gpu01"
LEAD_S = 5.0  # before the first poll


def soaks(count: int, node: str, *, a_site: int = 10, batch: int = 100) -> list[str]:
    """Put so many soaks of 72 h in, whose polls are spread evenly over the poll interval, so many to a site. Returns the attempts' ids."""
    plan, made = parse_plan({"rig": {"simulated": True}}), []
    for first in range(0, count, batch):
        with write_session() as s:
            made += [_soak(s, plan, n, count, node, f"site {n // a_site}") for n in range(first, min(count, first + batch))]
    return made


def _soak(s: Session, plan: Plan, n: int, count: int, node: str, site: str) -> str:
    at, code = database_now(s), f"S{n:05d}"
    targets = {"simulated": True, "hosts": {HOST: {"groups": ["engine", "loadgen"], "connection": "local"}}}
    named = {"code": code, "customer": "客户", "vendor": "厂商", "site": site, "contract": "-", "source_yaml": "", "state": "active"}
    engagement = Engagement(**named, people={}, order={}, packing_list=[], targets=targets, created_by="-", created_at=at)
    s.add(engagement)
    s.flush()
    sealed = {"canonical": plan.canonical(), "hash": plan.hash, "created_by": "-", "created_at": at, "sealed_at": at}
    revision = PlanRevision(engagement_id=engagement.id, revision=1, **sealed)
    s.add(revision)
    s.flush()
    attempt = Attempt(engagement_id=engagement.id, gate="G4", number=1, plan_id=revision.id, plan_hash=plan.hash, seed=1, started_by="-")
    seconds = float(plan.scaled_seconds(plan.g4.duration.base))
    due = at + timedelta(seconds=LEAD_S + soak_poll_s(seconds, settings().soak_poll_seconds) * n / count)
    attempt.status, attempt.generation, attempt.node, attempt.fence = "running", 3, node, 1
    attempt.created_at = attempt.started_at = attempt.counted_at = at
    attempt.next_due_at = due
    s.add(attempt)
    s.flush()
    s.add(HostLock(target=f"{code}/{HOST}", attempt_id=attempt.id, fence=1))
    memo = {"runs": {"start": 1}, "phase": "start", "run": None, "expected_s": seconds, "sure": True, "hosts": [HOST], "misses": 0}
    for position, spec in enumerate(GATE.steps(plan)):
        data = {**asdict(spec), "title": spec.title.json()}
        row = Step(attempt_id=attempt.id, position=position, key=spec.key, kind=str(spec.kind), title=spec.title.json(), spec=data)
        if position == 0:
            row.status, row.try_no, row.job_id, row.offsets = "running", 1, f"{attempt.id}-{spec.key}", {}
            row.started_at = row.last_seen_at = at
            row.expected_end_at = at + timedelta(seconds=seconds)
            row.result = {**memo, "job_since": at.isoformat(), "ask_at": due.isoformat()}
        s.add(row)
    return attempt.id
