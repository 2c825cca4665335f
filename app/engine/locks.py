"""Host locks: one attempt at a time may change a machine, with a number that only grows. The target itself refuses a lower one.

A machine is named by where it is reached and by its SSH host key (targets.inventory.Inventory.machines), not by an engagement: two engagements on
one machine share it, also where one names it by its IP address.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.attempts.models import Attempt
from app.engine.models import HostLock, TargetRemoval
from app.engine.rows import insert_new
from app.kit.db import write_session
from app.wipes.models import WipeOrder
from gates.transitions import RunStatus


def take(attempt_id: str, targets: Sequence[str]) -> int | str:
    """Take the locks of all targets, or none. Returns the fence to hand to the playbook, or the attempt that holds one of them.

    The lock of an attempt that has ended is taken over, with a higher fence. Taking what one already holds changes nothing.
    """
    with write_session() as s:
        rows = _rows(s, targets)
        for row in rows:
            if row.attempt_id not in (None, attempt_id) and _living(s, str(row.attempt_id)):
                return str(row.attempt_id)
        attempt = s.get_one(Attempt, attempt_id)
        if all((row.attempt_id, row.fence) == (attempt_id, attempt.fence) for row in rows):
            return attempt.fence
        attempt.fence = _give(s, rows, attempt_id, attempt.fence)
        return attempt.fence


def seize(s: Session, order_id: str, targets: Sequence[str]) -> int | str:
    """Take the locks of all targets for an order that is no attempt. Returns its fence, or the attempt or order that holds one of them."""
    rows = _rows(s, targets)
    if holder := next((str(row.attempt_id) for row in rows if row.attempt_id and _living(s, str(row.attempt_id))), None):
        return holder
    return _give(s, rows, order_id, 0)


def raise_fence(s: Session, attempt_id: str, above: int = 0) -> int:
    """Give an attempt a higher fence on all that it holds, higher than `above` too, and return it."""
    attempt = s.get_one(Attempt, attempt_id)
    rows = list(s.scalars(select(HostLock).where(HostLock.attempt_id == attempt_id).order_by(HostLock.target).with_for_update()))
    attempt.fence = _give(s, rows, attempt_id, max(attempt.fence, above))
    return attempt.fence


def ended(s: Session, attempt_id: str) -> bool:
    """Tell whether an attempt is known here and has ended. Of one that is not known nobody here can say that."""
    return s.scalar(select(Attempt.status).where(Attempt.id == attempt_id)) is not None and not _living(s, attempt_id)


def _rows(s: Session, targets: Sequence[str]) -> list[HostLock]:
    """Return the locked rows of targets, made where there are none: two that want one target at once come one after the other."""
    names = sorted(set(targets))
    insert_new(s, HostLock, [{"target": target, "fence": 0} for target in names], ("target",))
    return list(s.scalars(select(HostLock).where(HostLock.target.in_(names)).order_by(HostLock.target).with_for_update()))


def _give(s: Session, rows: Sequence[HostLock], holder: str, above: int) -> int:
    """Put a holder on locks, with a fence above all that were ever given: a root that was known by another name has seen one of those."""
    fence = 1 + max(above, s.scalar(select(func.max(HostLock.fence))) or 0)
    for row in rows:
        row.attempt_id, row.fence = holder, fence
    return fence


def release(s: Session, attempt_id: str) -> None:
    """Let go of all locks of an attempt that ended; the fences stay, since they may only grow."""
    s.execute(update(HostLock).where(HostLock.attempt_id == attempt_id).values(attempt_id=None).execution_options(synchronize_session=False))


def _living(s: Session, attempt_id: str) -> bool:
    """Tell whether an attempt, or an order to remove or to wipe, is still going on."""
    status = s.scalar(select(Attempt.status).where(Attempt.id == attempt_id))
    if status is not None:
        return not RunStatus(status).ended
    order = s.get(TargetRemoval, attempt_id) or s.get(WipeOrder, attempt_id)
    return order is not None and order.finished_at is None
