"""Host locks: one attempt at a time may change a target, with a number that only grows. The target itself refuses a lower one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.attempts.models import Attempt
from app.engine.models import HostLock, TargetRemoval
from app.kit.db import write_session
from gates.transitions import RunStatus


def take(attempt_id: str, targets: Sequence[str]) -> int | str:
    """Take the locks of all targets, or none. Returns the fence to hand to the playbook, or the attempt that holds one of them.

    The lock of an attempt that has ended is taken over, with a higher fence. Taking what one already holds changes nothing.
    """
    with write_session() as s:
        rows = {row.target: row for row in s.scalars(select(HostLock).where(HostLock.target.in_(targets)))}
        for row in rows.values():
            if row.attempt_id not in (None, attempt_id) and _living(s, str(row.attempt_id)):
                return str(row.attempt_id)
        attempt = s.get_one(Attempt, attempt_id)
        held = [rows[target].fence for target in targets if target in rows and rows[target].attempt_id == attempt_id]
        if len(held) == len(targets) and set(held) == {attempt.fence}:
            return attempt.fence
        fence = max([attempt.fence, *(row.fence for row in rows.values())]) + 1
        for target in targets:
            row = rows.get(target) or HostLock(target=target)
            row.attempt_id, row.fence = attempt_id, fence
            s.add(row)
        attempt.fence = fence
        return fence


def seize(s: Session, order_id: str, targets: Sequence[str]) -> int | str:
    """Take the locks of all targets for an order that is no attempt. Returns its fence, or the attempt or order that holds one of them."""
    rows = {row.target: row for row in s.scalars(select(HostLock).where(HostLock.target.in_(targets)))}
    if holder := next((str(row.attempt_id) for row in rows.values() if row.attempt_id and _living(s, str(row.attempt_id))), None):
        return holder
    fence = max([0, *(row.fence for row in rows.values())]) + 1
    for target in targets:
        row = rows.get(target) or HostLock(target=target)
        row.attempt_id, row.fence = order_id, fence
        s.add(row)
    return fence


def raise_fence(s: Session, attempt_id: str) -> None:
    """Give an attempt that changed its node a higher fence on all that it holds."""
    attempt = s.get_one(Attempt, attempt_id)
    rows = list(s.scalars(select(HostLock).where(HostLock.attempt_id == attempt_id)))
    attempt.fence = max([attempt.fence, *(row.fence for row in rows)]) + 1
    for row in rows:
        row.fence = attempt.fence


def release(s: Session, attempt_id: str) -> None:
    """Let go of all locks of an attempt that ended; the fences stay, since they may only grow."""
    s.execute(update(HostLock).where(HostLock.attempt_id == attempt_id).values(attempt_id=None).execution_options(synchronize_session=False))


def _living(s: Session, attempt_id: str) -> bool:
    """Tell whether an attempt, or an order to remove, is still going on."""
    status = s.scalar(select(Attempt.status).where(Attempt.id == attempt_id))
    if status is not None:
        return not RunStatus(status).ended
    order = s.get(TargetRemoval, attempt_id)
    return order is not None and order.finished_at is None
