"""One playbook run of a step, from its order to its end, over as many moves as it takes.

What is known of the present run stands in the step's `result`: {"runs": {phase: number of tries}, "run": name, "since", "events_at", "lost"}.
The name of the next run follows from it, so whoever continues after a crash orders the same run and adopts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.engine import events, runs, words
from app.engine.context import Ctx, title_of
from app.engine.outcome import Outcome, failed
from app.engine.policy import TRIES_MAX, WATCH_S
from app.engine.runs import Look, PlaybookRun
from app.kit.db import read_session
from app.settings import settings

UNBORN_MAX = 5  # a host that is killed before it can say that it began is started anew this often
GRACE_S = 30  # the host ends its playbook at the time-out by itself; this much later we do


@dataclass(frozen=True)
class Order:
    """A playbook run that a step wants: which phase, which playbook, the step's status meanwhile, the job it is about."""

    phase: str  # run, start, poll, collect, stop
    playbook: str
    status: str
    timeout_s: int
    job: dict[str, Any] = field(default_factory=dict)
    grace_s: int = GRACE_S
    hurry: bool = False  # all hosts at once, and none is waited for that does not answer (runs.PlaybookRun)


@dataclass
class Ended:
    """A run that has a result, all its events seen."""

    result: dict[str, Any]
    folder: Path
    memo: dict[str, Any]
    writes: list[Callable[[Session], None]]


def memo_of(ctx: Ctx) -> dict[str, Any]:
    """Return a copy of what the step remembers."""
    return {**(ctx.current.result or {})}


def begin(ctx: Ctx, order: Order, memo: dict[str, Any] | None = None, **step: Any) -> Outcome:
    """Start the run, or adopt it when a start before a crash did; the row says so in the same commit."""
    memo = memo_of(ctx) if memo is None else memo
    tries = dict(memo.get("runs") or {})
    number = int(tries.get(order.phase, 0)) + 1
    while (runs.folder_of(ctx.attempt.id, ctx.current.key, f"{order.phase}-{number}") / "used").exists():
        number += 1  # its result was dealt with already, by a try whose memory a retry has cleared
    name = f"{order.phase}-{number}"
    runs.start(_run(ctx, order, name))
    tries[order.phase] = number
    memo.update(runs=tries, run=name, phase=order.phase, events_at=0, since=ctx.now.isoformat(), unborn=0)
    return Outcome(due_s=WATCH_S, step={"status": order.status, "result": memo, **step})


def follow(ctx: Ctx, order: Order) -> Outcome | Ended:
    """Look at the present run of the step: an Outcome while there is nothing to decide for the step, Ended when there is."""
    memo = memo_of(ctx)
    folder = runs.folder_of(ctx.attempt.id, ctx.current.key, memo["run"])
    state = runs.look(folder)
    new, at = events.read_new(folder / "events.jsonl", int(memo.get("events_at", 0)))
    writes = [events.storing(ctx.attempt.id, ctx.current.id, memo["run"], new)] if new else []
    memo["events_at"] = at
    if state.look is Look.NEVER:
        return _unborn(ctx, order, memo)
    if state.look is Look.ALIVE:
        return _watch(ctx, order, memo, writes)
    if new and events.read_new(folder / "events.jsonl", at)[0]:  # more than one move can bring
        return Outcome(step={"result": memo}, writes=writes)
    if state.look is Look.LOST:
        return _lost(ctx, order, folder, memo, writes)
    return _ended(ctx, order, folder, memo, writes, state.result)


def _unborn(ctx: Ctx, order: Order, memo: dict[str, Any]) -> Outcome:
    """Start the run whose host never came to begin: killed before it could, or never spawned. Safe, but not for ever."""
    memo["unborn"] = int(memo.get("unborn", 0)) + 1
    if memo["unborn"] > UNBORN_MAX:
        return failed(words.lost_too_often(title_of(ctx.current), UNBORN_MAX), result={**memo, "unborn": 0})
    runs.start(_run(ctx, order, memo["run"]))
    return Outcome(due_s=WATCH_S, step={"result": memo})


def _watch(ctx: Ctx, order: Order, memo: dict[str, Any], writes: list[Callable[[Session], None]]) -> Outcome:
    since = datetime.fromisoformat(memo["since"])
    if (ctx.now - since).total_seconds() <= order.timeout_s + order.grace_s:
        return Outcome(due_s=WATCH_S, step={"result": memo} if writes else {}, writes=writes)
    runs.clean(ctx.attempt.id, runs.folder_of(ctx.attempt.id, ctx.current.key, memo["run"]))
    outcome = failed(words.timed_out(title_of(ctx.current), order.timeout_s), result=memo)
    outcome.writes += [*writes, *last_words(ctx, memo)]
    return outcome


def last_words(ctx: Ctx, memo: dict[str, Any]) -> list[Callable[[Session], None]]:
    """Return the writes for what the present run said and nobody has read: to be asked after its processes were ended, before another run begins."""
    if not memo.get("run"):
        return []
    path, at = runs.folder_of(ctx.attempt.id, ctx.current.key, memo["run"]) / "events.jsonl", int(memo.get("events_at", 0))
    writes = []
    while (read := events.read_new(path, at))[0]:
        writes.append(events.storing(ctx.attempt.id, ctx.current.id, memo["run"], read[0]))
        at = read[1]
    return writes


def _lost(ctx: Ctx, order: Order, folder: Path, memo: dict[str, Any], writes: list[Callable[[Session], None]]) -> Outcome:
    """End what the lost run left, then try again if the step says that this is safe, and not for ever."""
    runs.clean(ctx.attempt.id, folder)
    (folder / "used").touch()
    memo["lost"] = int(memo.get("lost", 0)) + 1
    repeatable = order.phase != "run" or bool(ctx.current.spec.get("repeatable", True))
    if repeatable and memo["lost"] < TRIES_MAX:
        outcome = begin(ctx, order, memo, try_no=ctx.current.try_no + 1)
    elif repeatable:
        outcome = failed(words.lost_too_often(title_of(ctx.current), memo["lost"]), result={**memo, "lost": 0})
    else:
        outcome = failed(words.not_repeatable(title_of(ctx.current)), result={**memo, "lost": 0})
    outcome.writes += writes
    return outcome


def _ended(
    ctx: Ctx, order: Order, folder: Path, memo: dict[str, Any], writes: list[Callable[[Session], None]], result: dict[str, Any]
) -> Outcome | Ended:
    """Hand the result on, once every event that the runner counted is stored."""
    (folder / "used").touch()
    if writes:  # stored with this commit, counted with the next
        return Outcome(step={"result": memo}, writes=writes)
    with read_session() as s:
        stored = events.stored(s, ctx.current.id, memo["run"])
    if stored != result.get("events") or result.get("events_lost"):
        return failed(words.events_lost(stored, int(result.get("events") or 0)), result=memo)
    if result.get("status") == "timeout":
        runs.clean(ctx.attempt.id, folder)
        return failed(words.timed_out(title_of(ctx.current), order.timeout_s), result=memo)
    return Ended(result, folder, memo, [])


def _run(ctx: Ctx, order: Order, name: str) -> PlaybookRun:
    return PlaybookRun(
        attempt_id=ctx.attempt.id,
        step_key=ctx.current.key,
        name=name,
        playbook=playbook_path(order.playbook),
        inventory=ctx.inventory,
        variables=ctx.variables(job=order.job),
        timeout_s=order.timeout_s,
        node=ctx.node,
        hurry=order.hurry,
    )


def playbook_path(name: str) -> Path:
    """Return the file of a playbook that a gate names; names come from declarations, never from people."""
    path = settings().playbook_dir / name
    if path.name != name or not path.is_file():
        raise FileNotFoundError(f"there is no playbook {name} below {settings().playbook_dir}")
    return path
