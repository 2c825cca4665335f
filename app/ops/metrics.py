"""Numbers for Prometheus, read from the database and the broker when they are asked for: nothing is counted in a process that may die.

`NAMES` is the contract: alert rules and dashboard use no other name (tests/unit/app/test_ops_files.py).
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import redis
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from sqlalchemy import ColumnElement, and_, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

import app
from app.attempts.models import Attempt, Step, VerdictRevision
from app.audit.models import AuditHead
from app.engine.claim import movable, unheld
from app.engine.hints import HEAVY, STEPS, TICK
from app.engine.models import Canary, Node
from app.engine.nodes import CANARY
from app.engine.steps import job as job_step
from app.kit.db import database_now, read_session
from app.ops import broker, retention
from app.settings import settings
from gates.judge import JUDGE_VERSION
from gates.model import StepKind
from gates.transitions import RunStatus

NEVER_S = 1e9  # the age of what never happened: larger than any limit of an alert
QUANTILES = (0.5, 0.99, 1.0)
ASKED = ("starting", "running", "polling", "collecting")  # the statuses of a step whose job is asked for
BACKUP_NOTE = "last-backup.json"  # below the state directory

HELP: dict[str, str] = {
    "quadgate_database_up": "1 when the database answers.",
    "quadgate_broker_up": "1 when the broker answers.",
    "quadgate_due_attempts": "Attempts that could be moved now and that nobody is moving.",
    "quadgate_oldest_due_seconds": "For how long the oldest of them has been waiting: 0 when nothing waits.",
    "quadgate_held_leases": "Attempts that a worker is moving now.",
    "quadgate_lease_age_seconds": "For how long the oldest move has been going on, whether its lease is renewed or not.",
    "quadgate_lost_contact_attempts": "Attempts whose target does not answer.",
    "quadgate_lost_contact_seconds": "For how long the longest of them has been silent: since its last answer.",
    "quadgate_poll_lateness_seconds": "How late the last polls of present jobs began, and what is overdue now: quantiles, 1 is the worst.",
    "quadgate_queue_depth": "Hints that wait in a queue of the broker.",
    "quadgate_canary_age_seconds": "Seconds since a canary task came back.",
    "quadgate_node_heartbeat_age_seconds": "Seconds since a node's own queue was worked on.",
    "quadgate_attempts": "Attempts by run status.",
    "quadgate_verdicts": "Judged attempts by gate and newest verdict: judging again moves one from verdict to verdict.",
    "quadgate_audit_rows_total": "Rows of the audit chain.",
    "quadgate_state_free_bytes": "Free bytes of the file system of the state directory.",
    "quadgate_backup_age_seconds": "Seconds since the last whole and verified backup of this state directory.",
    "quadgate_retention_age_seconds": "Seconds since all of the retention policy was applied, by a person or by the daily run.",
    "quadgate_retention_daily": "1 where the retention policy is to be applied once a day by the workers (QUADGATE_RETENTION_DAILY).",
    "quadgate_build_info": "1, with the versions of program and judge.",
}
NAMES = frozenset(HELP)


def text() -> bytes:
    """Return the metrics in Prometheus's text format. A database or broker that is away is a metric, not an error."""
    registry = CollectorRegistry()
    registry.register(_Collector())
    return generate_latest(registry)


class _Collector:
    def collect(self) -> Iterator[Metric]:
        queues = [TICK]
        up = 1.0
        try:
            with read_session() as s:
                found = [*_work(s), *_people(s)]
                queues += [queue.format(node=name) for name in s.scalars(select(Node.name).order_by(Node.name)) for queue in (STEPS, HEAVY)]
        except SQLAlchemyError:
            found, up = [], 0.0
        yield _gauge("quadgate_database_up", up)
        yield from found
        yield from _broker(queues)
        yield from _machine()


def _work(s: Session) -> list[Metric]:
    """Return what waits, what is held, and how old the signs of life are."""
    now = database_now(s)
    due, oldest = _count_and_least(s, Attempt.next_due_at, movable(), Attempt.next_due_at <= now, unheld(now))
    held, since_claim = _count_and_least(s, Attempt.lease_since, movable(), Attempt.lease_owner.is_not(None), Attempt.lease_until.is_not(None))
    silent = select(func.count(), func.min(func.coalesce(Step.last_seen_at, Step.started_at, Attempt.started_at)))
    lost, since = s.execute(
        silent.select_from(Attempt)
        .join(Step, and_(Step.attempt_id == Attempt.id, Step.position == Attempt.step_index), isouter=True)
        .where(Attempt.status == str(RunStatus.LOST_CONTACT))
    ).one()
    returned = s.scalar(select(Canary.returned_at).where(Canary.name == CANARY))
    beats = GaugeMetricFamily("quadgate_node_heartbeat_age_seconds", HELP["quadgate_node_heartbeat_age_seconds"], labels=["node"])
    for node in s.scalars(select(Node).order_by(Node.name)):
        beats.add_metric([node.name], _sign_age(now, node.heartbeat_at))
    return [
        _gauge("quadgate_due_attempts", due),
        _gauge("quadgate_oldest_due_seconds", _age(now, oldest)),
        _gauge("quadgate_held_leases", held),
        _gauge("quadgate_lease_age_seconds", _age(now, since_claim)),
        _lateness(s, now),
        _gauge("quadgate_lost_contact_attempts", lost),
        _gauge("quadgate_lost_contact_seconds", _age(now, since)),
        _gauge("quadgate_canary_age_seconds", _sign_age(now, returned)),
        beats,
    ]


def _lateness(s: Session, now: datetime) -> Metric:
    """Return how late polls are: those that each present job remembers, and what is overdue at whatever phase of a start, a poll or a collect."""
    job = and_(Step.attempt_id == Attempt.id, Step.position == Attempt.step_index, Step.kind == str(StepKind.JOB), Step.status.in_(ASKED))
    late: list[float] = []
    for remembered, due in s.execute(select(Step.result[job_step.LATE], Attempt.next_due_at).join(Step, job).where(movable())):
        late += [float(seconds) for seconds in remembered or ()]
        if due is not None and due < now:
            late.append((now - due).total_seconds())
    family = GaugeMetricFamily("quadgate_poll_lateness_seconds", HELP["quadgate_poll_lateness_seconds"], labels=["quantile"])
    late.sort()
    for share in QUANTILES:
        family.add_metric([f"{share:g}"], late[math.ceil(share * len(late)) - 1] if late else 0.0)  # nearest rank
    return family


def _people(s: Session) -> list[Metric]:
    """Return what came out so far."""
    statuses = GaugeMetricFamily("quadgate_attempts", HELP["quadgate_attempts"], labels=["status"])
    counted = {str(status): int(n) for status, n in s.execute(select(Attempt.status, func.count()).group_by(Attempt.status)).all()}
    for status in RunStatus:
        statuses.add_metric([str(status)], counted.get(str(status), 0))
    newest = select(VerdictRevision.attempt_id, func.max(VerdictRevision.revision).label("revision")).group_by(VerdictRevision.attempt_id).subquery()
    verdicts = GaugeMetricFamily("quadgate_verdicts", HELP["quadgate_verdicts"], labels=["gate", "verdict"])
    rows = s.execute(
        select(Attempt.gate, VerdictRevision.verdict, func.count())
        .join(VerdictRevision, VerdictRevision.attempt_id == Attempt.id)
        .join(newest, and_(newest.c.attempt_id == VerdictRevision.attempt_id, newest.c.revision == VerdictRevision.revision))
        .group_by(Attempt.gate, VerdictRevision.verdict)
        .order_by(Attempt.gate, VerdictRevision.verdict)
    )
    for gate, verdict, n in rows:
        verdicts.add_metric([gate, verdict], n)
    audit = CounterMetricFamily("quadgate_audit_rows", HELP["quadgate_audit_rows_total"])
    audit.add_metric([], s.scalar(select(AuditHead.seq)) or 0)
    applied = _gauge("quadgate_retention_age_seconds", _sign_age(database_now(s), retention.last_run(s)))
    return [statuses, verdicts, audit, applied, _gauge("quadgate_retention_daily", settings().retention_daily)]


def _broker(queues: list[str]) -> list[Metric]:
    try:
        found = broker.depths(queues)
    except (redis.RedisError, OSError):
        return [_gauge("quadgate_broker_up", 0)]
    depth = GaugeMetricFamily("quadgate_queue_depth", HELP["quadgate_queue_depth"], labels=["queue"])
    for queue, waiting in found.items():
        depth.add_metric([queue], waiting)
    return [_gauge("quadgate_broker_up", 1), depth]


def _machine() -> list[Metric]:
    state = settings().state_dir
    build = GaugeMetricFamily("quadgate_build_info", HELP["quadgate_build_info"], labels=["version", "judge"])
    build.add_metric([app.__version__, JUDGE_VERSION], 1)
    found: list[Metric] = [build]
    if state.is_dir():
        found.append(_gauge("quadgate_state_free_bytes", shutil.disk_usage(state).free))
    found.append(_gauge("quadgate_backup_age_seconds", _backup_age()))
    return found


def _backup_age() -> float:
    """Return the age of the last backup by the note that it left (clock of this machine)."""
    from app.kit.clock import now

    try:
        note: dict[str, Any] = json.loads((settings().state_dir / BACKUP_NOTE).read_bytes())
        return _sign_age(now(), datetime.fromisoformat(note["made_at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return NEVER_S


def _count_and_least(s: Session, column: Any, *conditions: ColumnElement[bool]) -> tuple[int, datetime | None]:
    count, least = s.execute(select(func.count(), func.min(column)).where(*conditions)).one()
    return int(count), least


def _gauge(name: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, HELP[name], value=float(value))


def _age(now: datetime, since: datetime | None) -> float:
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())


def _sign_age(now: datetime, seen: datetime | None) -> float:
    """Return the age of a sign of life. One that lies ahead of the clock, which was set back, is as old as it lies ahead: fresh it is not."""
    return NEVER_S if seen is None else abs((now - seen).total_seconds())
