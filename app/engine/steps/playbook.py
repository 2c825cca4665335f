"""A step that is one playbook run: it must be ok on every host it covers, and bring every file the gate expects."""

from __future__ import annotations

from app.engine import drive, reconcile
from app.engine.bring import bring
from app.engine.context import Ctx
from app.engine.outcome import Outcome, done, failed
from app.engine.steps.hosts import hold, outgrow


def move(ctx: Ctx) -> Outcome:
    """Start the run, watch it, or decide about its result."""
    step = ctx.current
    order = drive.Order("run", step.spec["playbook"], "starting", int(step.spec.get("timeout_s") or 600))
    if step.status in ("pending", "failed"):
        if (busy := hold(ctx)) is not None:
            return busy
        return drive.begin(ctx, order, try_no=step.try_no + 1, problem=None, started_at=step.started_at or ctx.now, finished_at=None)
    ended = drive.follow(ctx, order)
    if isinstance(ended, Outcome):
        return ended
    expected = reconcile.covered(drive.playbook_path(order.playbook), ctx.inventory, step.spec.get("expects") or {})
    if found := reconcile.troubles(ended.result, expected, playbook=order.playbook, addresses=ctx.inventory.addresses):
        if outgrow(ctx, ended.result):
            return drive.begin(ctx, order, ended.memo, try_no=step.try_no + 1)
        return failed(found[0], result=ended.memo)
    writes, trouble = bring(ctx, ended.folder)
    if trouble is not None:
        return failed(trouble, result=ended.memo)
    outcome = done(result={**ended.memo, "replies": ended.result.get("replies") or {}}, last_seen_at=ctx.now)
    outcome.writes += writes
    return outcome
