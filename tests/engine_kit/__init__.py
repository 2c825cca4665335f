"""A tiny site for the engine's tests: one or two local hosts, playbooks of a few tasks, rows made by hand."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from app.attempts.models import Attempt, Step
from app.engagements.models import Engagement
from app.engine.models import Node
from app.engine.policy import SILENT_S
from app.kit.clock import now
from app.kit.db import database_now, new_id, read_session, write_session
from app.plans.models import PlanRevision
from gates.model import StepKind, StepSpec
from gates.plan import parse_plan
from gates.text import Text

PATIENCE_S = 240.0  # on a machine that is busy with other things
PLAYBOOKS = Path(__file__).parent / "playbooks"
LOCAL = {"gpu01": {"groups": ["engine", "loadgen"], "connection": "local"}}


def playbook_step(key: str = "survey", playbook: str = "ok.yml", **spec: Any) -> StepSpec:
    return StepSpec(key=key, kind=StepKind.PLAYBOOK, title=Text(key, key), playbook=playbook, **spec)


def job_step(key: str = "run-1", **spec: Any) -> StepSpec:
    spec = {"expects": {"loadgen": ("records.jsonl", "pack.json")}, "changes_target": True, "measured": True, **spec}
    return StepSpec(key=key, kind=StepKind.JOB, title=Text(key, key), playbook="job_start.yml", **spec)


def manual_step(key: str = "unpacking") -> StepSpec:
    return StepSpec(key=key, kind=StepKind.MANUAL, title=Text(key, key))


def make_attempt(*specs: StepSpec, hosts: dict[str, Any] | None = None, code: str | None = None, due: bool = True) -> str:
    """Put an engagement with one attempt that has these steps into the database and return the attempt's id."""
    with write_session() as s:
        engagement = s.scalar(select(Engagement).where(Engagement.code == code)) if code else None
        if engagement is None:
            engagement = Engagement(
                code=code or f"E{new_id()[-8:]}",
                customer="客户",
                vendor="厂商",
                site="-",
                contract="-",
                people={},
                order={},
                packing_list=[],
                targets={"simulated": True, "hosts": hosts or LOCAL},
                source_yaml="",
                state="active",
                created_by="-",
                created_at=now(),
            )
            s.add(engagement)
            s.flush()
        number = len(list(s.scalars(select(Attempt.id).where(Attempt.engagement_id == engagement.id)))) + 1
        rules = parse_plan({"plan": {"revision": number}, "policy": {"attempts": {"G2": 1}}})
        plan = PlanRevision(
            engagement_id=engagement.id,
            revision=number,
            canonical=rules.canonical(),
            hash=rules.hash,
            created_by="-",
            created_at=now(),
            sealed_at=now(),
        )
        s.add(plan)
        s.flush()
        attempt = Attempt(
            engagement_id=engagement.id,
            gate="G2",
            number=number,
            plan_id=plan.id,
            plan_hash=rules.hash,
            seed=1,
            started_by="-",
            created_at=now(),
            next_due_at=now() if due else None,
        )
        s.add(attempt)
        s.flush()
        for position, spec in enumerate(specs):
            data = asdict(spec)
            s.add(
                Step(
                    attempt_id=attempt.id,
                    position=position,
                    key=spec.key,
                    kind=str(spec.kind),
                    title=spec.title.json(),
                    spec={**data, "title": spec.title.json()},
                )
            )
        return attempt.id


def attempt_of(attempt_id: str) -> Attempt:
    with read_session() as s:
        return s.get_one(Attempt, attempt_id)


def steps_of(attempt_id: str) -> list[Step]:
    with read_session() as s:
        return list(s.scalars(select(Step).where(Step.attempt_id == attempt_id).order_by(Step.position)))


def fall_silent(node: str, seconds: float) -> None:
    """Let a node have given no heartbeat for so long, and let that have been noted when it was missing first."""
    with write_session() as s:
        row, at = s.get_one(Node, node), database_now(s)
        row.heartbeat_at = at - timedelta(seconds=seconds)
        row.silent_since = at - timedelta(seconds=max(0.0, seconds - SILENT_S))


def wait_for(what: Callable[[], Any], seconds: float = PATIENCE_S, said: str = "") -> Any:
    """Wait until something is true; a test that waits in vain says for what. The time is only a guard against hanging."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := what():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {said or what}")


def drive(attempt_id: str, *, until: Callable[[Attempt], bool], seconds: float = PATIENCE_S) -> Attempt:
    """Move an attempt without a worker, by plain calls, until something holds."""
    from app.engine.advance import advance

    def step() -> Attempt | None:
        attempt = attempt_of(attempt_id)
        if until(attempt):
            return attempt
        advance(attempt_id, attempt.generation)
        return None

    return wait_for(step, seconds, f"attempt {attempt_id}: {attempt_of(attempt_id).status}")


def ended(attempt: Attempt) -> bool:
    return attempt.status in ("finished", "canceled", "error")
