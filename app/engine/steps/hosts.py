"""Taking the host locks before a step changes a target."""

from __future__ import annotations

from app.engine import locks
from app.engine.context import Ctx
from app.engine.outcome import Outcome
from app.engine.policy import BUSY_S


def hold(ctx: Ctx) -> Outcome | None:
    """Take the locks of all hosts of the engagement if the step changes targets. An Outcome means: another attempt holds them, come back."""
    if not ctx.current.spec.get("changes_target"):
        return None
    answer = locks.take(ctx.attempt.id, [f"{ctx.engagement.code}/{host}" for host in ctx.inventory.hosts])
    if isinstance(answer, str):
        return Outcome(due_s=BUSY_S)
    ctx.attempt.fence = answer
    return None
