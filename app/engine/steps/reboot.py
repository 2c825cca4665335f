"""A soak whose target rebooted goes on, in another boot (DESIGN 4.12). Whether the soak clock restarts there both parties say, behind the judgement.

The target's probe tells that a reboot cut its soak off. The step then orders the job again: its host is made ready anew (mounts, engine), and the
probe goes on behind its own journals. Not more often than the plan lets the clock restart: what is judged then could not pass any more.

Of a load generator and an engine host the reboot of one cuts off the job there and parts the other's from it: both are ordered again, with one
key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from app.engine import counting, words
from app.engine.context import Ctx, title_of
from app.engine.outcome import Outcome

BOOTS = "boots_before"  # in a step's memory: in how many boots its job ran before the present one


def may_go_on(ctx: Ctx, replies: Mapping[str, Mapping[str, Any]], memo: Mapping[str, Any]) -> bool:
    """Tell whether a reboot of a host ended the job on all its hosts, and the plan lets the clock restart once more.

    An attendant that still waits for a driver whose host rebooted is waited for: it may have another key than this node would give the driver.
    """
    if (ctx.current.spec.get("params") or {}).get("kind") != "soak":
        return False
    most = int(((ctx.plan.get("g4") or {}).get("clock") or {}).get("restarts_max") or 0)
    cut = [reply.get("rebooted") is True for reply in replies.values() if reply.get("rebooted") is True or reply.get("parted") is True]
    return int(memo.get(BOOTS, 0)) < most and len(cut) == len(replies) and any(cut)


def boots_before(replies: Iterable[Mapping[str, Any]]) -> int:
    """Return in how many boots the job ran before the present one, as its hosts say; 0 where a probe of an earlier version says nothing."""
    return max((int(reply.get("boots_before") or 0) for reply in replies), default=0)


def kept(offsets: Mapping[str, Any], replies: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the offsets, none beyond what was whole of a journal when the present boot took it over: what was fetched may be lost to a power cut."""
    whole: dict[str, int] = {}
    for reply in replies:
        for name, size in (reply.get("kept") or {}).items():
            whole[name] = min(int(size), whole.get(name, int(size)))
    return {name: min(int(offset), whole.get(name, 0)) for name, offset in offsets.items()}


def begin_anew(ctx: Ctx, outcome: Outcome, seconds: float, replies: list[Mapping[str, Any]]) -> None:
    """Let a step's decision say that its soak began anew, for `seconds`, and what the engineer does next."""
    boots = boots_before(replies)
    memo = {key: value for key, value in outcome.step["result"].items() if key != "asked_since"}
    outcome.step["result"] = memo | {BOOTS: boots, counting.SINCE: ctx.now.isoformat()}
    outcome.step["problem"] = {"code": "rebooted", **words.REBOOTED.fill(step=title_of(ctx.current), n=boots).json()}
    outcome.step["expected_end_at"] = ctx.now + timedelta(seconds=seconds)
    if any(reply.get("kept") for reply in replies):
        outcome.step["offsets"] = kept(ctx.current.offsets or {}, replies)
