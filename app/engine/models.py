"""What the engine keeps beside the attempts: nodes, host locks, the canary."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime, id_column


class Node(Base):
    """A machine whose worker starts host processes. Another takes over only after this heartbeat is stale."""

    __tablename__ = "node"
    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    heartbeat_at: Mapped[datetime] = mapped_column(UtcDateTime)
    evidence_token: Mapped[str | None] = mapped_column(String(36))  # of the file that it shows in its evidence store; None: it could write none
    sees: Mapped[list[Any] | None]  # names of the nodes whose files it saw there at its last heartbeat
    silent_since: Mapped[datetime | None] = mapped_column(UtcDateTime)  # when its heartbeat was first seen missing; null once it beats again


class HostLock(Base):
    """Who may change a target. `fence` only grows; the target refuses a lower one."""

    __tablename__ = "host_lock"
    target: Mapped[str] = mapped_column(String(160), primary_key=True)  # targets.inventory.Inventory.machines
    attempt_id: Mapped[str | None] = mapped_column(String(36))  # an attempt, a TargetRemoval, or a WipeOrder
    fence: Mapped[int] = mapped_column(default=0)


class TargetRemoval(Base):
    """One order to take everything of ours away from an engagement's targets. While it is not finished it holds their locks, as an attempt does."""

    __tablename__ = "target_removal"
    id: Mapped[str] = id_column()
    engagement_id: Mapped[str] = mapped_column(ForeignKey("engagement.id"))
    fence: Mapped[int] = mapped_column(default=0)
    tries: Mapped[int] = mapped_column(default=0)  # playbook runs; a lost one is followed by another
    report: Mapped[dict[str, Any] | None]  # {"hosts": {name: {"state": removed|left|unknown, "root", "why"}}, "problem"}
    started_by: Mapped[str] = mapped_column(String(120))
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class Canary(Base):
    """Proof that work gets done: a task that came back, not a process that is alive. A row of its own says when retention was done (ops)."""

    __tablename__ = "canary"
    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    returned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
