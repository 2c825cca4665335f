"""A cancel: end what runs here, stop what runs on the targets, and say what could not be stopped."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.attempts.models import Step
from app.attempts.moves import reason_pair
from app.engine import counting, drive, reconcile, runner, runs, stops, words
from app.engine.context import Ctx
from app.engine.keep import LeaseLost
from app.engine.outcome import Outcome, Trouble
from gates import system_words
from gates.model import StepKind
from gates.text import Text
from gates.transitions import Event

log = logging.getLogger("quadgate.engine")
LEFT = "left_here"  # in a step's memory while it is stopped: the sentence about processes of ours that could not be ended, or null
ON_A_NODE = ("starting", "polling", "collecting")  # statuses in which a playbook runs on the attempt's node
ON_TARGETS = (StepKind.PLAYBOOK, StepKind.JOB)


def move(ctx: Ctx) -> Outcome:
    """Return the next decision on the way to `canceled`. It gets there whatever fails: a cancel that hangs helps nobody."""
    try:
        return _move(ctx)
    except (runner.RunnerAway, OperationalError, LeaseLost):  # tried again, by us or by who has the lease now: the targets may have been told
        raise
    except Exception as error:
        log.exception("attempt %s: stopping its targets failed", ctx.attempt.id)
        outcome = _canceled(ctx, words.stop_failed(system_words.said(error), ctx.engagement.targets.get("hosts") or ()))
        outcome.writes += drive.last_words(ctx, drive.memo_of(ctx))  # nobody looks there again
        return outcome


def _move(ctx: Ctx) -> Outcome:
    step = ctx.step
    if step is None or not any(s.kind in ON_TARGETS and (s.status != "pending" or s.job_id) for s in ctx.steps):
        return _canceled(ctx, None)
    hosts = _touched(ctx)
    order = stops.order(ctx, "stopping", hosts, job_id=step.job_id or "", left=runs.remote_dirs(ctx.attempt.id))
    if step.status != "stopping":
        left = _end_here(ctx)
        memo = drive.memo_of(ctx)
        said = drive.last_words(ctx, memo)
        known = {"in_flight": step.status in ("pending", "starting") or left is not None, LEFT: left}
        outcome = drive.begin(ctx, order, {**memo, **known})
        outcome.writes += said
        return outcome
    ended = drive.follow(ctx, order)
    if isinstance(ended, Outcome) and ended.event is not Event.FAIL:
        return ended
    partial, replies = ended if isinstance(ended, Outcome) else None, stops.replies_of(stops.result_of(ctx, ended))
    if elsewhere := [str(reply.get("why")) for reply in replies.values() if reply.get("state") == "taken_over"]:
        return _canceled(ctx, words.taken_over(elsewhere[0]), partial)
    running, found = stops.going_on(ctx, ended, hosts)
    if left_here := drive.memo_of(ctx).get(LEFT):
        found = [*found, Text.parse(left_here)]
    if running or found:
        return _canceled(ctx, words.not_stopped(running, found), partial)
    outcome = _canceled(ctx, None, partial)
    measuring = dict.fromkeys(host for s in ctx.steps if s.job_id for group in s.spec.get("expects") or {} for host in ctx.inventory.members(group))
    judged, in_flight = ctx.attempt.extension is not None, bool(drive.memo_of(ctx).get("in_flight"))
    outcome.attempt.update(counting.after_stop(ctx.steps, replies, measuring, in_flight=in_flight, judged=judged))
    return outcome


def _end_here(ctx: Ctx) -> dict[str, Any] | None:
    """End host processes and their playbooks, where hosts live; also of a round with others, who ask again. Returns why some of them go on.

    A process that does not end (its disk hangs) keeps nobody from telling the targets: what it orders there is stopped there.
    """
    try:
        runs.clean_all(ctx.attempt.id)
    except runner.RunnerAway:
        raise
    except OSError as error:  # TimeoutError too
        log.warning("attempt %s: not all of its processes here could be ended (%s); its targets are told all the same", ctx.attempt.id, error)
        return words.left_here(system_words.said(error)).json()
    if ctx.taken_from is not None and ctx.current.status in ON_A_NODE:
        return words.left_there(ctx.taken_from).json()
    return None


def _touched(ctx: Ctx) -> list[str]:
    """Return the hosts where something of the attempt may run: of jobs and engine always, those of a playbook step while it is the current one."""
    names = [*ctx.inventory.members("loadgen"), *ctx.inventory.members("engine")]
    if ctx.current.kind == StepKind.PLAYBOOK:
        spec = ctx.current.spec
        names += reconcile.covered(drive.playbook_path(str(spec["playbook"])), ctx.inventory, spec.get("expects") or {})
    return list(dict.fromkeys(names))


def _canceled(ctx: Ctx, trouble: Trouble | None, partial: Outcome | None = None) -> Outcome:
    """End the attempt. What could not be stopped stands on it, and in the reason of the transition.

    An extension that is given up leaves the verdict that it went on from: nothing that was measured since was judged.
    """
    extension = ctx.attempt.extension
    stands = {"verdict": extension["verdict"], "because": extension["because"]} if extension and extension["judged"] is None else {}
    rest = [step.id for step in ctx.steps if step.status not in ("done", "canceled")]

    def write(s: Session) -> None:
        for step_id in rest:
            s.get_one(Step, step_id).status = "canceled"

    asked = reason_pair(ctx.attempt.cancel_reason)
    reason = Text(f"{asked.en} {trouble.text.en}".strip(), f"{asked.zh} {trouble.text.zh}".strip()) if trouble else asked
    writes = [*(partial.writes if partial else []), write]
    return Outcome(
        due_s=None,
        event=Event.CANCEL,
        reason=reason,
        trouble=trouble,
        attempt={**stands, **({} if trouble else {"problem": None})},
        step={"status": "canceled"} if ctx.step else {},
        writes=writes,
    )
