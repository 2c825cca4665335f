"""Attempts at a gate, their steps, transitions, events and samples."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class Attempt(Base):
    """One try at one gate. `status` is gates.transitions.RunStatus; the verdict is another thing and stands beside it."""

    __tablename__ = "attempt"
    __table_args__ = (UniqueConstraint("engagement_id", "gate", "rehearsal", "number"), Index("ix_attempt_due", "next_due_at"))
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    gate: Mapped[str] = mapped_column(String(4))
    number: Mapped[int]
    rehearsal: Mapped[bool] = mapped_column(default=False)
    plan_id: Mapped[str] = mapped_column(ForeignKey("plan_revision.id"))
    plan_hash: Mapped[str] = mapped_column(String(80))
    packing_number: Mapped[int] = mapped_column(default=0)  # revision of the packing list that was in force when it was made
    seed: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(String(16), default="queued")
    generation: Mapped[int] = mapped_column(default=0)
    step_index: Mapped[int] = mapped_column(default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(120))
    lease_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    lease_since: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when it was claimed: renewals do not move it
    next_due_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # None: nothing to do until somebody acts
    last_enqueued_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    node: Mapped[str | None] = mapped_column(String(120))  # whose worker owns the host process
    fence: Mapped[int] = mapped_column(default=0)
    cancel_requested_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    cancel_reason: Mapped[str] = mapped_column(Text, default="")
    counted_at: Mapped[datetime | None] = mapped_column(UtcDateTime)  # a measured request may have been sent: from here on it counts
    rig_cause: Mapped[str] = mapped_column(Text, default="")  # asked for; approved by both in approvals
    problem: Mapped[dict[str, Any] | None]  # {"code", "en", "zh-CN", "step"} when status is error
    verdict: Mapped[str | None] = mapped_column(String(16))
    because: Mapped[list[Any] | None]
    may_extend_by: Mapped[int] = mapped_column(default=0)  # run pairs by which its verdict says that it may be extended
    extension: Mapped[dict[str, Any] | None]  # once extended: see app/attempts/extend.py; its verdict is open until `judged` is set
    started_by: Mapped[str] = mapped_column(String(36))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Transition(Base):
    """One change of an attempt's status, written together with the status and the audit row."""

    __tablename__ = "attempt_transition"
    __table_args__ = (UniqueConstraint("attempt_id", "generation"),)
    id: Mapped[str] = id_column()
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    generation: Mapped[int]
    from_status: Mapped[str] = mapped_column(String(16))
    event: Mapped[str] = mapped_column(String(32))
    to_status: Mapped[str] = mapped_column(String(16))
    actor: Mapped[str] = mapped_column(String(120))
    reason: Mapped[str] = mapped_column(Text, default="")
    at: Mapped[datetime] = mapped_column(UtcDateTime)


SKIPPED = "skipped"  # code of the problem of a step that an earlier run's breaking off passed over: never done, and never to be done


class Step(Base):
    """One step of an attempt, expanded from the gate's declaration when the attempt was made.

    `status`: pending, starting (host process runs the start playbook), running (job on the target), polling, collecting, waiting (a person),
    done, failed, canceled.
    """

    __tablename__ = "step"
    __table_args__ = (UniqueConstraint("attempt_id", "position"), UniqueConstraint("attempt_id", "key"))
    id: Mapped[str] = id_column()
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    position: Mapped[int]
    key: Mapped[str] = mapped_column(String(60))
    kind: Mapped[str] = mapped_column(String(12))
    title: Mapped[dict[str, Any]]  # {"en", "zh-CN"}
    spec: Mapped[dict[str, Any]]  # the StepSpec as JSON
    status: Mapped[str] = mapped_column(String(12), default="pending")
    try_no: Mapped[int] = mapped_column(default=0)
    job_id: Mapped[str | None] = mapped_column(String(120))
    offsets: Mapped[dict[str, Any] | None]  # bytes fetched of each journal of the job
    expected_end_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    last_seen_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    result: Mapped[dict[str, Any] | None]
    problem: Mapped[dict[str, Any] | None]  # {"code", "en", "zh-CN"}
    started_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)

    @property
    def settled(self) -> bool:
        """Return whether nothing of the step is left to do: it is done, or it was passed over because an earlier run broke off."""
        return self.status == "done" or (self.status == "canceled" and (self.problem or {}).get("code") == SKIPPED)


class StepEvent(Base):
    """One event of Ansible, complete and redacted."""

    __tablename__ = "step_event"
    __table_args__ = (
        UniqueConstraint("step_id", "run", "uuid"),
        Index("ix_step_event_attempt", "attempt_id", "id"),
    )
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    step_id: Mapped[str] = mapped_column(ForeignKey("step.id"))
    run: Mapped[str] = mapped_column(String(80))  # name of the playbook run, e.g. start-1, poll-7
    uuid: Mapped[str] = mapped_column(String(60))
    counter: Mapped[int]
    kind: Mapped[str] = mapped_column(String(60))
    host: Mapped[str] = mapped_column(String(120), default="")
    task: Mapped[str] = mapped_column(String(255), default="")
    stdout: Mapped[str] = mapped_column(Text, default="")
    data: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class Sample(Base):
    """One line of a job's journal, fetched by a poll; kept for the live page. The evidence file is the truth of a verdict.

    Of a soak each poll keeps a spread of its lines, the first and the last among them: the ends of `seq` tell how many there were.
    """

    __tablename__ = "sample"
    __table_args__ = (UniqueConstraint("step_id", "stream", "seq"), Index("ix_sample_attempt", "attempt_id", "id"))
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    step_id: Mapped[str] = mapped_column(ForeignKey("step.id"))
    stream: Mapped[str] = mapped_column(String(40))
    seq: Mapped[int] = mapped_column(BigInteger)
    data: Mapped[dict[str, Any]]


class AttemptCause(Base):
    """What a person says caused one event that broke a soak's run (gates.g4.timeline). It counts when both parties approve this very row.

    Rows are never changed: of one event the newest counts, until one is agreed.
    """

    __tablename__ = "attempt_cause"
    __table_args__ = (Index("ix_attempt_cause_attempt", "attempt_id"),)
    id: Mapped[str] = id_column()
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    event: Mapped[str] = mapped_column(String(200))  # e.g. boot:<boot id>, telemetry_gap:<boot id>:<ns>
    hour: Mapped[str] = mapped_column(String(20))  # of load, as the verdict says
    what: Mapped[dict[str, Any]]  # {"en", "zh-CN"}: the event in words
    kind: Mapped[str] = mapped_column(String(20))  # causes.KINDS
    text: Mapped[str] = mapped_column(Text)
    user_id: Mapped[str] = mapped_column(String(36))
    person: Mapped[str] = mapped_column(String(120))
    party: Mapped[str] = mapped_column(String(16))
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class VerdictRevision(Base):
    """One judgement of an attempt. Judging again adds a revision; it never replaces one (app/attempts/revisions.py)."""

    __tablename__ = "verdict_revision"
    __table_args__ = (UniqueConstraint("attempt_id", "revision"),)
    id: Mapped[str] = id_column()
    attempt_id: Mapped[str] = mapped_column(ForeignKey("attempt.id"))
    revision: Mapped[int]
    verdict: Mapped[str] = mapped_column(String(16))
    document: Mapped[dict[str, Any]]  # verdict.json
    hash: Mapped[str] = mapped_column(String(80))
    judge_version: Mapped[str] = mapped_column(String(40))
    rules_hash: Mapped[str] = mapped_column(String(80))
    plan_hash: Mapped[str] = mapped_column(String(80))
    manifest_hash: Mapped[str] = mapped_column(String(80))
    substance: Mapped[str] = mapped_column(String(80), default="")  # what people agree to: verdict, reasons, verdict of every check
    g2_baseline: Mapped[str | None] = mapped_column(String(80))  # hash of the baseline that a judgement of G3 rests on, "" for none
    judged_by: Mapped[str] = mapped_column(String(120), default="")
    why: Mapped[str] = mapped_column(Text, default="")  # what it was judged again for
    at: Mapped[datetime] = mapped_column(UtcDateTime)
