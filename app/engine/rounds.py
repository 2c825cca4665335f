"""Polls of one site that are due together begin together: one playbook host asks all their targets (docs/adr/0009).

A round is nothing but runs that are launched at once. Each attempt decides its own poll under its own lease, in its own run directory; after the
launch nobody knows of the round but the host process (shares.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any

from sqlalchemy import and_, select

from app.attempts.models import Attempt, Step
from app.engagements.models import Engagement
from app.engine import counting, runs
from app.engine.claim import unheld
from app.engine.context import Ctx
from app.engine.policy import EARLY_SHARE, soak_poll_s
from app.engine.runs import PlaybookRun, RunState
from app.kit.db import database_now, read_session
from app.settings import settings
from app.targets.inventory import ways
from gates.model import StepKind
from gates.transitions import RunStatus

LOOK_SHARE = 4  # attempts looked at for each that may board: some are silent, or reached otherwise


@dataclass
class Round:
    """Runs that are to begin at once, their locks in our hands until then. What is not launched at the end is let go."""

    boarded: list[runs.Ready] = field(default_factory=list)
    trouble: Exception | None = None  # why none of them has begun

    def __enter__(self) -> Round:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for here in self.boarded:
            here.let_go()

    def start(self, run: PlaybookRun) -> RunState:
        """Board a run that nobody has begun; of another tell how it stands."""
        here = runs.ready(run)
        if isinstance(here, RunState):
            return here
        self.boarded.append(here)
        return RunState(runs.Look.ALIVE)

    def go(self) -> None:
        """Launch what has boarded. What keeps them from it is kept for `asked`, since each attempt has to deal with it by itself."""
        boarded, self.boarded = self.boarded, []
        try:
            if boarded:
                runs.launch(boarded)
        except Exception as error:
            self.trouble = error


def may_lead(ctx: Ctx) -> bool:
    """Tell whether others may board the poll that this attempt has just ordered."""
    return ctx.attempt.status == RunStatus.RUNNING and ctx.current.status == "running" and _sound(ctx.current.result or {})


def others(ctx: Ctx, most: int) -> list[tuple[str, int]]:
    """Return id and generation of at most so many attempts whose polls are due too, or nearly, at the site of this one; the most overdue first.

    Whether they poll is decided under their own leases: what is read here may be old by then.
    """
    engagement, early = ctx.engagement, timedelta(seconds=early_s(math.inf))
    with read_session() as s:
        now = database_now(s)
        at = and_(Step.attempt_id == Attempt.id, Step.position == Attempt.step_index)
        rows = s.execute(
            select(Attempt.id, Attempt.generation, Step.spec, Step.result, Step.expected_end_at, Engagement.targets)
            .join(Step, at)
            .join(Engagement, Engagement.id == Attempt.engagement_id)
            .where(Engagement.customer == engagement.customer, Engagement.site == engagement.site)
            .where(Attempt.id != ctx.attempt.id, Attempt.node == ctx.node, Attempt.status == str(RunStatus.RUNNING))
            .where(Attempt.cancel_requested_at.is_(None), Attempt.next_due_at <= now + early, unheld(now))
            .where(Step.kind == str(StepKind.JOB), Step.status == "running")
            .order_by(Attempt.next_due_at)
            .limit(LOOK_SHARE * most)
        )
        here, found = ways(engagement.targets), []
        for row in rows:
            going_on = row.expected_end_at is None or row.expected_end_at > now
            if going_on and _sound(row.result or {}) and _due(row.spec, row.result or {}, now) and ways(row.targets) == here:
                found.append((row.id, row.generation))
            if len(found) >= most:
                break
        return found


def interval_s(expected_s: float) -> float:
    """Return the seconds between two polls of a soak that is expected to take so long."""
    return soak_poll_s(expected_s, settings().soak_poll_seconds)


def early_s(expected_s: float) -> float:
    """Return how many seconds sooner than its time such a soak may be polled when others of its site are."""
    return EARLY_SHARE * interval_s(expected_s)


def _sound(memo: Mapping[str, Any]) -> bool:
    """Tell whether the last poll came home: who is silent, or whose playbook host was lost, is asked alone until it answers."""
    return counting.SINCE in memo and not memo.get("misses") and not memo.get("lost")


def _due(spec: Mapping[str, Any], memo: Mapping[str, Any], now: datetime) -> bool:
    if (spec.get("params") or {}).get("kind") != "soak":
        return False
    try:
        return (datetime.fromisoformat(memo["ask_at"]) - now).total_seconds() <= early_s(float(memo["expected_s"]))
    except (KeyError, TypeError, ValueError):
        return False  # its own move says what is wrong with it
