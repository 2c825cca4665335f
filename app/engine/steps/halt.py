"""What a stop-loss ends at once: the jobs and engines of the failed attempt itself, before its report is written.

Other attempts of a stopped engagement are canceled (app/attempts/conclude.py); this one has its verdict and is canceled by nobody, and without
an order of ours its engine would keep the GPUs for as long as nobody looks. What could not be stopped is told by host and holds up no report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.exc import OperationalError

from app.attempts.models import Attempt, Step
from app.engagements.models import Engagement
from app.engine import drive, stops, words
from app.engine.context import Ctx
from app.engine.keep import LeaseLost
from app.engine.outcome import Outcome, Trouble
from app.engine.runner import RunnerAway
from app.engine.steps.cancel import ON_TARGETS
from app.kit.errors import QuadgateError
from gates import system_words
from gates.model import StepKind, Verdict
from gates.pipeline_facts import State
from gates.text import Text
from gates.transitions import Event

HALT = "halt"  # in the memory of the report's step: {"hosts": {name: {"state", "why"}}, "problem": Trouble|null}


def move(ctx: Ctx) -> Outcome | None:
    """Return the next decision on the way to the stop; None when there is nothing to stop, or all was tried."""
    if not _due(ctx):
        return None
    memo = drive.memo_of(ctx)
    if not _touched(ctx):
        return _told(memo, {}, None)
    hosts = list(dict.fromkeys([*ctx.inventory.members("loadgen"), *ctx.inventory.members("engine")]))
    order = stops.order(ctx, "running", hosts)
    try:
        if not memo.get("run"):
            return drive.begin(ctx, order, memo, problem=None)
        ended = drive.follow(ctx, order)
    except (RunnerAway, OperationalError, LeaseLost):
        raise
    except Exception as error:  # whatever it is, the verdict is to be printed
        why = error.pair() if isinstance(error, QuadgateError) else Text("{said}.", "{said}。").fill(said=system_words.said(error))
        return _told(memo, {}, words.not_halted({}, [why]))
    if isinstance(ended, Outcome) and ended.event is not Event.FAIL:
        return ended
    result = stops.result_of(ctx, ended)
    replies = stops.replies_of(result)
    said = {str(failure.get("host")): str(failure.get("message") or "") for failure in result.get("failures") or []}
    states = {host: _state(replies.get(host), said.get(host, "")) for host in hosts}
    running, found = stops.going_on(ctx, ended, hosts)
    told = _told(memo, states, words.not_halted(running, found) if running or found else None)
    told.writes += ended.writes
    return told


def _due(ctx: Ctx) -> bool:
    attempt = ctx.attempt
    stopped = attempt.verdict == Verdict.FAIL and ctx.engagement.state == State.STOPPED and not attempt.rehearsal
    return stopped and HALT not in (ctx.current.result or {})


def owed() -> ColumnElement[bool]:
    """Return what `_due` asks as a condition on an attempt and the step that it is at: its next move sees to the stop, and prints nothing yet."""
    stopped = Attempt.engagement_id.in_(select(Engagement.id).where(Engagement.state == str(State.STOPPED)))
    untold = and_(Step.kind == str(StepKind.REPORT), Step.result[HALT].as_string().is_(None))
    return and_(Attempt.verdict == str(Verdict.FAIL), Attempt.rehearsal.is_(False), stopped, untold)


def _touched(ctx: Ctx) -> bool:
    begun = any(step.kind == StepKind.JOB and step.job_id for step in ctx.steps)
    return begun or any(step.kind in ON_TARGETS and step.spec.get("changes_target") and step.status != "pending" for step in ctx.steps)


def _state(reply: object, why: str) -> dict[str, str]:
    if not isinstance(reply, Mapping) or reply.get("state") not in ("stopped", "running", "taken_over"):
        return _unknown(why)
    left = " ".join(str(said) for said in reply.get("could_not_stop") or [])
    return {"state": str(reply["state"]), "why": left or str(reply.get("why") or "")}


def _unknown(why: str) -> dict[str, str]:
    return {"state": "unknown", "why": why}


def _told(memo: Mapping[str, Any], hosts: Mapping[str, Mapping[str, str]], trouble: Trouble | None) -> Outcome:
    kept = {"hosts": dict(hosts), "problem": trouble.json() if trouble else None}
    return Outcome(step={"status": "running", "result": {**memo, "run": None, HALT: kept}, "problem": None})
