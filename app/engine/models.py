"""What the engine keeps beside the attempts: nodes, host locks, the canary."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from app.kit.db import Base, UtcDateTime


class Node(Base):
    """A machine whose worker starts host processes. Another takes over only after this heartbeat is stale."""

    __tablename__ = "node"
    name: Mapped[str] = mapped_column(String(120), primary_key=True)
    heartbeat_at: Mapped[datetime] = mapped_column(UtcDateTime)


class HostLock(Base):
    """Who may change a target. `fence` only grows; the target refuses a lower one."""

    __tablename__ = "host_lock"
    target: Mapped[str] = mapped_column(String(160), primary_key=True)  # <engagement code>/<host>
    attempt_id: Mapped[str | None] = mapped_column(String(36))
    fence: Mapped[int] = mapped_column(default=0)


class Canary(Base):
    """Proof that work gets done: a task that came back, not a process that is alive."""

    __tablename__ = "canary"
    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    sent_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    returned_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
