"""From when an attempt counts (DESIGN 4.11): from its first measured request, whatever its end.

Nobody here sees that request leave. So an attempt counts from the moment at which the engine is about to order a job that measures; this is
written before the order goes out, so that no crash, no lost answer and no cancel can leave a measured attempt uncounted. It is taken back only
on proof that the job was never handed over, or by the word of every target that no measured request was made. In doubt it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from app.engine import reconcile
from app.engine.context import Ctx
from app.engine.outcome import Outcome

MINE = "counts"  # in a step's memory: it was this step that made the attempt count
SINCE = "job_since"  # in a step's memory: since when a target is known to have its job
DOUBT = "doubt"  # in a step's memory: the answer of a start was lost, so the job may be there


def ahead(ctx: Ctx, job_id: str, memo: dict[str, Any]) -> Outcome | None:
    """Return the decision that the attempt counts from now on, to be committed before a job that measures is ordered; None when it does already."""
    if not ctx.current.spec.get("measured") or ctx.attempt.counted_at is not None:
        return None
    return Outcome(attempt={"counted_at": ctx.now}, step={"job_id": job_id, "result": {**memo, MINE: True}})


def after_failed_start(result: Mapping[str, Any], memo: Mapping[str, Any], hosts: Iterable[str]) -> dict[str, Any]:
    """Return the attempt's columns after a start that failed: it counts no more where no host can have got the job, by this start or one before."""
    if not memo.get(MINE) or memo.get(DOUBT) or memo.get("lost"):
        return {}
    hosts = list(hosts)
    return {"counted_at": None} if hosts and all(reconcile.never_handed_over(result, host) for host in hosts) else {}


def after_nothing_measured(memo: Mapping[str, Any], *, judged: bool) -> dict[str, Any]:
    """Return the attempt's columns after a job whose own pack proves that it never came to measure. `judged`: in an extension, which counts."""
    return {"counted_at": None} if memo.get(MINE) and not judged else {}


def after_stop(steps: Iterable[Any], replies: Mapping[str, Any], hosts: Iterable[str], *, in_flight: bool, judged: bool) -> dict[str, Any]:
    """Return the attempt's columns after its jobs were stopped: it counts no more where every host of them says that it measured nothing.

    `in_flight`: a start was on its way when the cancel came, and could still arrive behind the stop: then the word of a host proves nothing.
    `judged`: an extension was stopped, whose attempt was judged before. A job that a host is known to have had, and of which it tells nothing any
    more, may have measured: whoever removed it took the proof away.
    """
    hosts, steps = list(hosts), list(steps)
    mine = any((step.result or {}).get(MINE) for step in steps)
    if judged or in_flight or not mine or not hosts:
        return {}
    known = [(str(host), step.job_id) for step in steps if (step.result or {}).get(SINCE) for host in step.result.get("hosts") or ()]
    if any(job not in ((replies.get(host) or {}).get("known") or ()) for host, job in known):
        return {}
    return {"counted_at": None} if all((replies.get(host) or {}).get("measured") is False for host in hosts) else {}
