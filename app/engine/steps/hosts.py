"""Taking the host locks before a step changes a target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.engine import locks
from app.engine.context import Ctx
from app.engine.outcome import Outcome
from app.engine.policy import BUSY_S
from app.kit.db import write_session

# What the probe says when a host has seen a higher fence (probe/hostlock.py). `marked`: whoever had it gave it back.
REFUSED = re.compile(r"The host is (held|marked) by attempt (\S+) with fencing number (\d+); attempt")


def hold(ctx: Ctx) -> Outcome | None:
    """Take the locks of all machines of the engagement if the step changes targets. An Outcome means: another attempt holds them, come back."""
    if not ctx.current.spec.get("changes_target"):
        return None
    answer = locks.take(ctx.attempt.id, ctx.inventory.machines)
    if isinstance(answer, str):
        return Outcome(due_s=BUSY_S)
    ctx.attempt.fence = answer
    return None


def outgrow(ctx: Ctx, result: Mapping[str, Any]) -> bool:
    """Take a fence above the one that a host refused ours for, if the attempt that brought it there has ended. False: the refusal stands.

    A root can have seen higher numbers than ours: of another controller, or from before this database was restored. An attempt that still has
    the host, also one that nobody here knows, keeps it.
    """
    found = [REFUSED.search(str(failure.get("message") or "")) for failure in result.get("failures") or []]
    refusals = [match for match in found if match]
    if not refusals:
        return False
    with write_session() as s:
        for match in refusals:
            how, holder = match.group(1), match.group(2)
            if holder == ctx.attempt.id or not (how == "marked" or locks.ended(s, holder)):
                return False
        ctx.attempt.fence = locks.raise_fence(s, ctx.attempt.id, max(int(match.group(3)) for match in refusals))
    return True
