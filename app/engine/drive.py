"""One playbook run of a step, from its order to its end, over as many moves as it takes.

What is known of the present run stands in the step's `result`: {"runs": {phase: number of tries}, "run": name, "since", "events_at", "lost"}.
The name of the next run follows from it, so whoever continues after a crash orders the same run and adopts it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.engine import events, runs, words
from app.engine.context import Ctx, title_of
from app.engine.outcome import Outcome, failed
from app.engine.policy import POLL_WATCH_S, POLLS_KEPT, TRIES_MAX, WATCH_MAX_S, WATCH_S
from app.engine.runs import Look, PlaybookRun
from app.kit.clock import machine_time
from app.kit.db import read_session
from app.settings import settings

log = logging.getLogger("quadgate.engine")
PHASES = ("run", "start", "poll", "collect")  # of runs that a step orders itself; `stop` is a cancel's
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
    light: bool = False  # takes seconds and comes by the thousand: rarely looked at, decided with its last events, its files removed
    hurry: bool = False  # all hosts at once, and none is waited for that does not answer (runs.PlaybookRun)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values of the order that no event may show."""
        return (str(self.job["attend_key"]),) if self.job.get("attend_key") else ()


@dataclass
class Ended:
    """A run that has a result, all its events seen. `writes`: those that are not stored yet, for the commit that decides (see `decided`)."""

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
    name = _next_run(ctx, memo, order.phase)
    said = [] if order.phase == "stop" else _end_earlier(ctx, name)  # a cancel has ended what it could, and waits for nothing else
    run = _run(ctx, order, name)
    if order.light and ctx.together is not None:
        ctx.together.start(run)
    else:
        runs.start(run)
    used = runs.used(ctx.attempt.id, ctx.current.key, order.phase) if order.light else []
    for old in used[:-POLLS_KEPT]:  # what was decided about them is committed; the newest tell the next number
        runs.remove(runs.folder_of(ctx.attempt.id, ctx.current.key, f"{order.phase}-{old}"))
    tries[order.phase] = int(name.rpartition("-")[2])
    memo.update(runs=tries, run=name, phase=order.phase, events_at=0, since=ctx.now.isoformat(), began=list(machine_time()), unborn=0)
    return Outcome(due_s=POLL_WATCH_S if order.light else WATCH_S, step={"status": order.status, "result": memo, **step}, writes=said)


def _end_earlier(ctx: Ctx, name: str) -> list[Callable[[Session], None]]:
    """End a run of this step that lives on although the step failed, as when nobody could read how it stood: two of them would work on one target.

    Returns the writes for what it said. Raises OSError when its processes do not end: then nothing else is begun.
    """
    writes: list[Callable[[Session], None]] = []
    for folder in runs.living(ctx.attempt.id, ctx.current.key, name):
        log.warning("%s, run %s goes on although its step failed: it is ended before another one begins", ctx.current.key, folder.name)
        runs.clean(ctx.attempt.id, folder)
        (folder / "used").touch()
        writes += _unread(ctx, folder.name.removeprefix(f"{ctx.current.key}-"), 0)
    return writes


def _next_run(ctx: Ctx, memo: dict[str, Any], phase: str) -> str:
    """Return the name of a phase's next run. One that was dealt with already, maybe by a try whose memory a retry has cleared, is none."""
    used = runs.used(ctx.attempt.id, ctx.current.key, phase)
    return f"{phase}-{max([int((memo.get('runs') or {}).get(phase, 0)), *used]) + 1}"


def begun(ctx: Ctx, memo: dict[str, Any], phase: str) -> bool:
    """Tell whether the next run of a phase exists already, ordered by somebody who was ended before the row could say so.

    It is to be adopted, whatever one would order now: it runs, or has run, and what it said belongs into the record.
    """
    return (runs.folder_of(ctx.attempt.id, ctx.current.key, _next_run(ctx, memo, phase)) / "lock").exists()


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
    if writes and not order.light:  # stored with this commit, counted with the next
        (folder / "used").touch()
        return Outcome(step={"result": memo}, writes=writes)
    return _ended(ctx, order, Ended(state.result, folder, memo, writes), new)


def _unborn(ctx: Ctx, order: Order, memo: dict[str, Any]) -> Outcome:
    """Start the run whose host never came to begin: killed before it could, or never spawned. Safe, but not for ever."""
    memo["unborn"] = int(memo.get("unborn", 0)) + 1
    if memo["unborn"] > UNBORN_MAX:
        return failed(words.lost_too_often(title_of(ctx.current), UNBORN_MAX), result={**memo, "unborn": 0})
    runs.start(_run(ctx, order, memo["run"]))
    return Outcome(due_s=WATCH_S, step={"result": memo})


def _watch(ctx: Ctx, order: Order, memo: dict[str, Any], writes: list[Callable[[Session], None]]) -> Outcome:
    if _age_s(ctx, memo) <= order.timeout_s + order.grace_s:
        return Outcome(due_s=_next_look_s(ctx, order, memo), step={"result": memo} if writes else {}, writes=writes)
    runs.clean(ctx.attempt.id, runs.folder_of(ctx.attempt.id, ctx.current.key, memo["run"]))
    outcome = failed(words.timed_out(title_of(ctx.current), order.timeout_s), result=memo)
    outcome.writes += [*writes, *last_words(ctx, memo)]
    return outcome


def _age_s(ctx: Ctx, memo: dict[str, Any]) -> float:
    """Return for how long the present run has lived, in s: by this machine's own clock, which no step of the wall clock moves.

    Where the run began in another boot or on another machine only the database's clock can tell.
    """
    boot, at = memo.get("began") or ("", 0.0)
    here, now = machine_time()
    return now - float(at) if boot == here else (ctx.now - datetime.fromisoformat(memo["since"])).total_seconds()


def _next_look_s(ctx: Ctx, order: Order, memo: dict[str, Any]) -> float:
    """Return when to look again at a run that goes on: what it says is shown after a second, one that is silent is asked ever less often."""
    if order.light:
        return POLL_WATCH_S
    said = runs.folder_of(ctx.attempt.id, ctx.current.key, memo["run"]) / "events.jsonl"
    silent = max(0.0, time.time() - said.stat().st_mtime) if said.exists() else 0.0
    return max(WATCH_S, min(WATCH_MAX_S, silent / 4))


def last_words(ctx: Ctx, memo: dict[str, Any]) -> list[Callable[[Session], None]]:
    """Return the writes for what the present run said and nobody has read: to be asked after its processes were ended, before another run begins."""
    unread = {str(memo["run"]): int(memo.get("events_at", 0))} if memo.get("run") else {}
    unread |= {_next_run(ctx, memo, phase): 0 for phase in PHASES if begun(ctx, memo, phase)}  # of a start that nobody could commit
    return [write for run, at in unread.items() for write in _unread(ctx, run, at)]


def _unread(ctx: Ctx, run: str, at: int) -> list[Callable[[Session], None]]:
    """Return the writes for what a run that is over said behind an offset, as far as it can be read: what cannot be holds nobody up."""
    writes = []
    path = runs.folder_of(ctx.attempt.id, ctx.current.key, run) / "events.jsonl"
    try:
        while (read := events.read_new(path, at))[0]:
            writes.append(events.storing(ctx.attempt.id, ctx.current.id, run, read[0]))
            at = read[1]
    except (OSError, events.Torn) as error:
        log.warning("what the run %s of %s said behind byte %s cannot be read: %s", run, ctx.current.key, at, error)
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


def _ended(ctx: Ctx, order: Order, ended: Ended, new: list[dict[str, Any]]) -> Outcome | Ended:
    """Hand the result on, if every event that the runner counted is stored, or is `new` and stored with the decision."""
    (ended.folder / "used").touch()
    with read_session() as s:
        stored = events.stored(s, ctx.current.id, ended.memo["run"], new)
    outcome: Outcome | Ended = ended
    if stored != ended.result.get("events") or ended.result.get("events_lost"):
        outcome = failed(words.events_lost(stored, int(ended.result.get("events") or 0)), result=ended.memo)
    elif ended.result.get("status") == "timeout":
        runs.clean(ctx.attempt.id, ended.folder)
        outcome = failed(words.timed_out(title_of(ctx.current), order.timeout_s), result=ended.memo)
    if isinstance(outcome, Outcome):
        outcome.writes += ended.writes
    return outcome


def decided(ctx: Ctx, ended: Ended, decide: Callable[[Ctx, Ended], Outcome]) -> Outcome:
    """Return what a step decides about a run, with the events that are not stored yet. Where it cannot decide they are stored alone.

    The next move then asks again, and says why not.
    """
    memo = {**ended.memo}
    try:
        outcome = decide(ctx, ended)
    except Exception:
        if not ended.writes:
            raise
        return Outcome(step={"result": memo}, writes=ended.writes)
    outcome.writes[:0] = ended.writes
    return outcome


def _run(ctx: Ctx, order: Order, name: str) -> PlaybookRun:
    return PlaybookRun(
        attempt_id=ctx.attempt.id,
        step_key=ctx.current.key,
        name=name,
        playbook=playbook_path(order.playbook),
        inventory=replace(ctx.inventory, secrets=(*ctx.inventory.secrets, *order.secrets)),
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
