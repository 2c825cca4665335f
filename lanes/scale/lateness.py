"""How late polls began: from the moment at which the engine had said that it would ask again to that at which the playbook was ordered."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select

from app.attempts.models import Attempt, Step
from app.engine.rounds import early_s
from app.kit.db import read_session
from gates.model import StepKind

CLOCKS_S = 0.5  # by which an order may seem to come before its time: the two clocks are read one after the other


class Asked:
    """Collects when each attempt is to be asked again, by looking more often than polls come."""

    def __init__(self) -> None:
        self.due: dict[str, set[float]] = {}

    def look(self) -> None:
        """Read the present due times."""
        with read_session() as s:
            for attempt, memo in s.execute(select(Step.attempt_id, Step.result).where(Step.kind == str(StepKind.JOB))):
                self.due.setdefault(attempt, set()).add(datetime.fromisoformat(memo["ask_at"]).timestamp())


def of_polls(asked: Asked, spawned: dict[str, list[float]], begin: float, end: float) -> list[float]:
    """Return the seconds by which each poll that was due between two moments came late; one that has not come by the end is as late as that."""
    late, sooner = [], CLOCKS_S + early_s(math.inf)  # a poll that came early in a round is the one that was due
    for attempt, times in asked.due.items():
        orders = sorted(spawned.get(attempt, []))
        for due in (at for at in times if begin <= at < end):
            late.append(max(0.0, next((order for order in orders if order >= due - sooner), end) - due))
    return sorted(late)


def quantile(values: list[float], share: float) -> float:
    """Return the value at or below which this share of the sorted values lies; the worst there is when there are few."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("inf")


def unwell() -> list[str]:
    """Return what became of attempts that do not run any more, each in a sentence: a soak of this lane has no reason to end."""
    with read_session() as s:
        rows: Iterable[Attempt] = s.scalars(select(Attempt).where(Attempt.status != "running").limit(5))
        return [f"attempt {row.id} is {row.status}: {(row.problem or {}).get('en', '-')}" for row in rows]
