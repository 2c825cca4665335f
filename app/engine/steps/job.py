"""A step whose work lives on a target: start (or adopt) the job, leave it alone, ask now and then, collect.

A job that measures is thrown once (DESIGN 4.11). From the moment at which a target said that it has the job, the step only asks about it, also
after a retry: a job that is gone then is a run that broke off, never one that is measured again. Only a job that proves to have ended before
any request that could tell something of the product (its engine did not start) is followed by another, under an id of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from app.engine import counting, drive, reconcile, rounds, set_back, words
from app.engine.attend_key import key_of
from app.engine.bring import bring, unpacked
from app.engine.context import Ctx, title_of
from app.engine.outcome import Outcome, done, failed
from app.engine.policy import (
    ASK_TIMEOUT_S,
    COLLECT_BYTES_PER_S,
    ORDER_MAX_S,
    RUN_MARGIN_S,
    START_MARGIN_S,
    START_TIMEOUT_S,
    TRIES_MAX,
    back_off_s,
    run_again_s,
)
from app.engine.steps import journal, reboot
from app.engine.steps.hosts import hold, outgrow
from app.targets.inventory import Inventory
from gates.model import ATTENDED
from gates.transitions import Event, RunStatus

START, POLL, COLLECT = "start", "poll", "collect"
LATE = "late"  # in a step's memory: by how many seconds its last polls began late, the newest last (read by app/ops/metrics.py)
LATE_KEPT = 8
OVERTIME = "overtime_s"  # in a step's memory: for how long its job was seen running beyond its expected end
LOOK_S = 60  # what a look itself may take, beside the wait for it
BYTES = "journal_bytes"  # in a step's memory: of its journals by the last poll
BEFORE = "before"  # in a step's memory: [{job, said}], the jobs that ended before they could measure anything


def move(ctx: Ctx) -> Outcome:
    """Return the next decision about the job of the current step."""
    step = ctx.current
    if step.status in ("pending", "failed"):
        if (busy := hold(ctx)) is not None:
            return busy
        if _is_known(ctx):
            return _ask_again(ctx)
        if (first := counting.ahead(ctx, _job_id(ctx), drive.memo_of(ctx))) is not None:
            return first
        return drive.begin(
            ctx,
            _order(ctx, START),
            try_no=step.try_no + 1,
            problem=None,
            job_id=_job_id(ctx),
            started_at=step.started_at or ctx.now,
            finished_at=None,
        )
    if step.status == "running":
        return _wait_or_ask(ctx)
    phase = str((step.result or {}).get("phase"))
    ended = drive.follow(ctx, _order(ctx, phase))
    if isinstance(ended, Outcome):
        return ended
    return drive.decided(ctx, ended, {START: _started, POLL: _polled, COLLECT: _collected}[phase])


def _job_id(ctx: Ctx) -> str:
    """Return the id of the step's job: the step's own, with a number behind it when jobs before it never came to measure."""
    before = len((ctx.current.result or {}).get(BEFORE) or ())
    return f"{ctx.attempt.id}-{ctx.current.key}" + (f".{before + 1}" if before else "")


def _is_known(ctx: Ctx) -> bool:
    """Tell whether a target said once that it has this measuring job: then it is never ordered again, only asked for."""
    return bool(ctx.current.spec.get("measured")) and counting.SINCE in (ctx.current.result or {})


def _ask_again(ctx: Ctx) -> Outcome:
    """Go on with a job after a retry: at once, or at the expected end of a run, since no playbook runs while a cell is measured."""
    memo = {**drive.memo_of(ctx), "misses": 0, "asked_since": ctx.now.isoformat(), OVERTIME: 0.0}
    end = ctx.current.expected_end_at
    outcome = _later(ctx, memo, 0.0 if _is_soak(ctx) or end is None else max(0.0, (end - ctx.now).total_seconds()))
    outcome.step.update(try_no=ctx.current.try_no + 1, problem=None, finished_at=None)
    return outcome


def _order(ctx: Ctx, phase: str) -> drive.Order:
    step = ctx.current
    job = {"id": _job_id(ctx), "offsets": step.offsets or {}}
    if phase == START and ctx.inventory.members(ATTENDED):
        job["attend_key"] = key_of(_job_id(ctx))
    playbook, status = {START: (step.spec["playbook"], "starting"), POLL: ("job_poll.yml", "polling"), COLLECT: ("job_collect.yml", "collecting")}[
        phase
    ]
    timeout_s = {START: start_timeout_s, POLL: lambda _: ASK_TIMEOUT_S, COLLECT: collect_timeout_s}[phase](ctx)
    return drive.Order(phase, playbook, status, timeout_s, job, light=phase == POLL)


def start_timeout_s(ctx: Ctx) -> int:
    """Return how long the start playbook may take, in s: two loads of the model by the engagement's word, never the hours of the job itself."""
    load = float((ctx.engagement.targets.get("engine") or {}).get("start_timeout_s") or 0)
    return min(int(ctx.current.spec.get("timeout_s") or 600), ORDER_MAX_S, max(START_TIMEOUT_S, math.ceil(START_MARGIN_S + 2 * load)))


def collect_timeout_s(ctx: Ctx) -> int:
    """Return how long the playbook that brings a job's pack home may take, in s: by the bytes of its journals that the last poll of a soak told."""
    return min(ORDER_MAX_S, ASK_TIMEOUT_S + math.ceil(int(drive.memo_of(ctx).get(BYTES) or 0) / COLLECT_BYTES_PER_S))


def slack_s(spec: Mapping[str, Any]) -> int:
    """Return how long beyond its expected time a job may go on: what the plan allows one run, without the length of a soak itself."""
    params = spec.get("params") or {}
    soak = int(params.get("seconds") or 0) if params.get("kind") == "soak" else 0
    return max(0, int(spec.get("timeout_s") or 600) - soak)


def _is_soak(ctx: Ctx) -> bool:
    return (ctx.current.spec.get("params") or {}).get("kind") == "soak"


def _job_hosts(ctx: Ctx) -> list[str]:
    groups = ctx.current.spec.get("expects") or {}
    return list(dict.fromkeys(host for group in groups for host in ctx.inventory.members(group)))


def may_have_it(inventory: Inventory, hosts: list[str], result: Mapping[str, Any]) -> list[str]:
    """Return the hosts whose word tells whether a start that failed handed over the job.

    The attendant comes first (job_start.yml): where its play failed, that ended the playbook, and what no task reached has no job.
    """
    stats: Mapping[str, Mapping[str, int]] = result.get("stats") or {}
    attended = [host for host in inventory.members(ATTENDED) if any((stats.get(kind) or {}).get(host) for kind in ("failures", "dark"))]
    reached = {host for counts in stats.values() for host, n in (counts or {}).items() if n}
    return attended if attended and not reached - set(attended) else hosts


def _started(ctx: Ctx, ended: drive.Ended) -> Outcome:
    """Decide after the start playbook: the job runs, or a sentence says why not. An unknown outcome is asked again, which adopts."""
    order = _order(ctx, START)
    expected = reconcile.covered(drive.playbook_path(order.playbook), ctx.inventory, ctx.current.spec.get("expects") or {})
    found = reconcile.troubles(ended.result, expected, playbook=order.playbook, addresses=ctx.inventory.addresses)
    if found:
        if outgrow(ctx, ended.result):
            return drive.begin(ctx, order, ended.memo, try_no=ctx.current.try_no + 1)
        dark = [host for host, n in ((ended.result.get("stats") or {}).get("dark") or {}).items() if n]
        unknown = reconcile.only_unreachable(ended.result) and any(not reconcile.began_nothing(ended.result, host) for host in dark)
        if unknown and int(ended.memo["runs"].get(START, 1)) < TRIES_MAX:
            return drive.begin(ctx, order, {**ended.memo, counting.DOUBT: True}, try_no=ctx.current.try_no + 1)
        outcome = failed(found[0], result=ended.memo)
        if counting.SINCE not in ended.memo:  # a soak that shall go on after a reboot has measured
            outcome.attempt.update(counting.after_failed_start(ended.result, ended.memo, may_have_it(ctx.inventory, _job_hosts(ctx), ended.result)))
        return outcome
    replies: dict[str, dict[str, Any]] = ended.result.get("replies") or {}
    hosts = _job_hosts(ctx) or list(replies)
    bad = [host for host in hosts if (replies.get(host) or {}).get("state") not in ("started", "adopted", "resumed")]
    if bad or not hosts:
        return failed(words.no_reply(bad, order.playbook, replies.get(bad[0]) if bad else replies), result=ended.memo)
    seconds, sure = journal.expected_s(ctx, [replies[host] for host in hosts])
    boots = reboot.boots_before([replies[host] for host in hosts])
    anew = boots > int(ended.memo.get(reboot.BOOTS, 0))
    known = None if anew else ended.memo.get(counting.SINCE) if all(replies[host]["state"] == "adopted" for host in hosts) else None
    since = datetime.fromisoformat(known) if known else ctx.now  # after a retry the job is as old as it is
    memo = {**ended.memo, "expected_s": seconds, "sure": sure, "hosts": hosts, "misses": 0, counting.SINCE: since.isoformat()}
    over = all(replies[host].get("job_state") in ("exited", "dead") for host in hosts)
    left = 0.0 if over else max(0.0, seconds - (ctx.now - since).total_seconds()) + RUN_MARGIN_S
    outcome = _later(ctx, memo, min(rounds.interval_s(seconds), left) if _is_soak(ctx) else left)
    outcome.step.update(expected_end_at=ctx.now if over else since + timedelta(seconds=seconds), last_seen_at=ctx.now)
    if anew:
        reboot.begin_anew(ctx, outcome, seconds, [replies[host] for host in hosts])
    if any(replies[host]["state"] == "started" for host in hosts):  # journals of its own, that begin at 0
        outcome.step["offsets"] = {}
        outcome.writes += journal.forgetting(ctx)
    return outcome


def _later(ctx: Ctx, memo: dict[str, Any], seconds: float) -> Outcome:
    """Leave the job alone for so long. The time is kept in the row, since a nudge may come earlier."""
    return Outcome(
        due_s=seconds,
        step={
            "status": "running",
            "result": {**memo, "run": None, "ask_at": (ctx.now + timedelta(seconds=seconds)).isoformat(), "ask_s": seconds},
        },
    )


def _wait_or_ask(ctx: Ctx) -> Outcome:
    """Ask when it is time: a soak is polled, a measured run is asked for its pack when it should be over."""
    memo = drive.memo_of(ctx)
    wait = (datetime.fromisoformat(memo["ask_at"]) - ctx.now).total_seconds()
    given = float(memo.get("ask_s", math.inf))
    if wait > given + set_back.SET_BACK_S:  # a move spanned a clock's way back: its time is of the clock before
        return _later(ctx, memo, given)
    if wait > (rounds.early_s(float(memo["expected_s"])) if ctx.beside and _is_soak(ctx) else 0.0):
        return Outcome(due_s=wait)
    memo[LATE] = [*(memo.get(LATE) or ())[1 - LATE_KEPT :], max(0.0, round(-wait, 2))]
    over = ctx.current.expected_end_at is not None and ctx.now >= ctx.current.expected_end_at
    phase = next((one for one in (POLL, COLLECT) if drive.begun(ctx, memo, one)), COLLECT if over or not _is_soak(ctx) else POLL)
    return drive.begin(ctx, _order(ctx, phase), memo)


def _silent(ctx: Ctx, memo: dict[str, Any]) -> Outcome:
    """Wait longer each time for a target that does not answer. Silence is no failure; the attempt goes on when news come."""
    misses = int(memo.get("misses", 0)) + 1
    outcome = _later(ctx, {**memo, "misses": misses}, back_off_s(misses))
    if ctx.attempt.status == RunStatus.RUNNING:
        outcome.event, outcome.reason = Event.LOSE_CONTACT, words.SILENT.fill(step=title_of(ctx.current))
    return outcome


def _heard(ctx: Ctx, outcome: Outcome) -> Outcome:
    """Note that the target answered."""
    outcome.step["last_seen_at"] = ctx.now
    if ctx.attempt.status == RunStatus.LOST_CONTACT and outcome.event is None:
        outcome.event, outcome.reason = Event.REGAIN_CONTACT, words.HEARD_AGAIN.fill(step=title_of(ctx.current))
    return outcome


def _answers(ctx: Ctx, ended: drive.Ended, phase: str) -> Outcome | dict[str, dict[str, Any]]:
    """Return what each host of the job said, or the decision when that is not known."""
    order = _order(ctx, phase)
    if reconcile.only_unreachable(ended.result):
        return _silent(ctx, ended.memo)
    hosts: list[str] = ended.memo["hosts"]
    if found := reconcile.troubles(ended.result, hosts, playbook=order.playbook, addresses=ctx.inventory.addresses):
        return failed(found[0], result=ended.memo)
    replies = {host: (ended.result.get("replies") or {}).get(host) or {} for host in hosts}
    if elsewhere := next((reply for reply in replies.values() if reply.get("state") == "taken_over"), None):
        return failed(words.replaced(str(elsewhere.get("why"))), result=ended.memo)
    if bad := [host for host, reply in replies.items() if reply.get("state") not in ("running", "exited", "dead", "absent")]:
        return failed(words.no_reply(bad, order.playbook, replies[bad[0]]), result=ended.memo)
    gone = [host for host, reply in replies.items() if reply["state"] == "absent"]
    if gone and ended.memo.get("absent"):
        return _heard(ctx, journal.broken_off(ctx, ended.memo, ctx.current.offsets or {}, words.GONE))
    if gone:
        measured = bool(ctx.current.spec.get("measured"))
        return failed(words.job_absent(gone, _job_id(ctx), measured=measured), result={**ended.memo, "absent": measured})
    ended.memo.pop("absent", None)
    return replies


def _polled(ctx: Ctx, ended: drive.Ended) -> Outcome:
    replies = _answers(ctx, ended, POLL)
    if isinstance(replies, Outcome):
        return replies
    writes, offsets = journal.chunks(ctx, replies, ended.folder / "staging")
    told = [reply[BYTES] for reply in replies.values() if isinstance(reply.get(BYTES), int)]
    memo = {**ended.memo, "misses": 0, "lost": 0, BYTES: max(told, default=0)}  # it came home: what was lost before is made good
    if any(reply["state"] == "running" for reply in replies.values()):
        anew = reboot.boots_before(replies.values()) > int(memo.get(reboot.BOOTS, 0))  # the start that said so was never read
        outcome = _later(ctx, memo, rounds.interval_s(float(memo["expected_s"]))) if anew else _still_running(ctx, memo)
        if anew:
            reboot.begin_anew(ctx, outcome, float(memo["expected_s"]), list(replies.values()))
    elif reboot.may_go_on(ctx, replies, memo):
        ctx.current.offsets = offsets
        outcome = drive.begin(ctx, _order(ctx, START), memo)
    else:
        ctx.current.offsets, ctx.current.result = offsets, memo
        outcome = drive.begin(ctx, _order(ctx, COLLECT), memo)
    outcome.step.setdefault("offsets", offsets)
    outcome.writes += writes
    return _heard(ctx, outcome)


def _still_running(ctx: Ctx, memo: dict[str, Any]) -> Outcome:
    """Come back: a soak in its own rhythm, but at its expected end at the latest, and in that rhythm beyond it; a run a little later.

    A job that runs far beyond its time is an error; a retry is a person's word to wait for as long again.
    """
    expected = float(memo["expected_s"])
    elapsed = (ctx.now - datetime.fromisoformat(memo[counting.SINCE])).total_seconds()
    asked = (ctx.now - datetime.fromisoformat(memo["asked_since"])).total_seconds() if "asked_since" in memo else elapsed
    left = expected - elapsed
    memo = {**memo, OVERTIME: _overtime_s(ctx, memo, -left)}
    if min(memo[OVERTIME], asked) > slack_s(ctx.current.spec):
        return failed(words.job_overdue(title_of(ctx.current), round(-left)), result=memo)
    if _is_soak(ctx):
        return _later(ctx, memo, min(rounds.interval_s(expected), left + RUN_MARGIN_S) if left > 0 else rounds.interval_s(expected))
    late = min(elapsed, expected + asked)  # a clock that was set forward by hours makes nobody wait for a share of them after a person's word
    return _later(ctx, memo, run_again_s(late if memo.get("sure") else 2 * late))


def _overtime_s(ctx: Ctx, memo: Mapping[str, Any], beyond: float) -> float:
    """Return for how long a job was seen running beyond its expected end, look by look: at most `beyond` s, which is what the clock says.

    A look stands for little more than what was waited for it: a clock that was set forward by hours makes no job late.
    """
    if beyond <= 0 or "ask_at" not in memo:
        return max(0.0, beyond)
    waited = float(memo.get("ask_s", 0.0))
    since = (ctx.now - datetime.fromisoformat(memo["ask_at"])).total_seconds() + waited
    return min(beyond, float(memo.get(OVERTIME, 0.0)) + min(max(since, 0.0), 2 * waited + LOOK_S))


def _collected(ctx: Ctx, ended: drive.Ended) -> Outcome:
    """Take the pack, or come back. A job that broke off is a fact for the judge: its evidence is kept, and no further run is made."""
    replies = _answers(ctx, ended, COLLECT)
    if isinstance(replies, Outcome):
        return replies
    kept = {host: {key: value for key, value in reply.items() if key not in ("chunks", "parts")} for host, reply in replies.items()}
    memo = {**ended.memo, "misses": 0, "replies": kept}
    if any(reply["state"] == "running" for reply in replies.values()):
        return _heard(ctx, _still_running(ctx, memo))
    if reboot.may_go_on(ctx, replies, ended.memo):  # it came behind the last poll
        return _heard(ctx, drive.begin(ctx, _order(ctx, START), {**ended.memo, "misses": 0}))
    whole = all(journal.ended_well(reply, ended.folder / "staging", host) for host, reply in replies.items())
    writes, trouble = bring(ctx, ended.folder, complete=whole)
    if trouble is not None:
        return failed(trouble, result=memo)
    packs = unpacked(ctx, ended.folder)
    if not whole and (said := journal.never_began(replies, packs)):
        return _heard(ctx, _another(ctx, memo, said))
    rest, offsets = journal.rest(ctx, packs)
    memo["injections"] = journal.injections(ctx, packs)
    memo["timing"] = journal.timing(ctx, packs) if whole else None
    outcome = done(result=memo, offsets=offsets) if whole else journal.broken_off(ctx, memo, offsets, words.BROKE_OFF)
    outcome.writes += [*writes, *rest]
    return _heard(ctx, outcome)


def _another(ctx: Ctx, memo: dict[str, Any], said: dict[str, tuple[str, str]]) -> Outcome:
    """End in an error after which a retry orders another job: this one proved that it ended before it could measure anything."""
    before = [*(memo.get(BEFORE) or ()), {"job": _job_id(ctx), "said": {host: message for host, (_, message) in said.items()}}]
    host, (kind, message) = next(iter(said.items()))
    trouble = words.nothing_measured(title_of(ctx.current), kind, host, message)
    outcome = failed(trouble, result={"runs": memo.get("runs"), BEFORE: before}, offsets=None)
    outcome.attempt.update(counting.after_nothing_measured(memo, judged=ctx.attempt.extension is not None))
    return outcome
