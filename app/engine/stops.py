"""The stop of targets, for a cancel and for a stop-loss: how it is ordered, and what its answers say, host by host.

All hosts are asked at once and given seconds (settings: stop_seconds). Who has not answered by then is named, and waited for by nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from app.engine import drive, durable, events, reconcile, runs, words
from app.engine.capture import reply_of
from app.engine.context import Ctx
from app.engine.outcome import Outcome
from app.engine.policy import STOP_GRACE_S
from app.settings import settings
from gates.text import Text

log = logging.getLogger("quadgate.engine")
PLAYBOOK = "stop.yml"
UNANSWERED = ("timed_out", "run_lost")  # ends of a run that are told host by host instead


def order(ctx: Ctx, status: str, hosts: list[str], *, job_id: str = "", left: list[str] | None = None) -> drive.Order:
    """Return the order to stop what an attempt runs on its hosts. `left`: where modules of ended playbooks may go on (runs.remote_dirs)."""
    jobs = [step.job_id for step in ctx.steps if step.job_id]
    job = {"id": job_id, "jobs": jobs, "offsets": {}, "hosts": ":".join(hosts), "left": left or []}
    return drive.Order("stop", PLAYBOOK, status, settings().stop_seconds, job, grace_s=STOP_GRACE_S, hurry=True)


def result_of(ctx: Ctx, ended: drive.Ended | Outcome) -> dict[str, Any]:
    """Return what is known of a stop that is over, also when it did not come to its own end: every answer that it wrote down until then."""
    if isinstance(ended, drive.Ended):
        return ended.result
    folder = runs.folder_of(ctx.attempt.id, ctx.current.key, str(drive.memo_of(ctx).get("run")))
    left, at = durable.read_json(folder / "result.json"), 0
    result: dict[str, Any] = left if isinstance(left, dict) else {}
    replies: dict[str, Any] = {}
    try:
        while (read := events.read_new(folder / "events.jsonl", at))[0]:
            replies.update(said for event in read[0] if (said := reply_of(event)) is not None)
            at = read[1]
    except (OSError, events.Torn) as error:  # who is not heard is named, as one that did not answer
        log.warning("attempt %s: what the targets said to the stop behind byte %s cannot be read: %s", ctx.attempt.id, at, error)
    return {**result, "replies": {**replies, **(result.get("replies") or {})}}


def replies_of(result: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return what each host answered, of those that answered in our words."""
    return {host: reply for host, reply in (result.get("replies") or {}).items() if isinstance(reply, Mapping)}


def going_on(ctx: Ctx, ended: drive.Ended | Outcome, hosts: list[str]) -> tuple[dict[str, list[str]], list[Text]]:
    """Return what may go on: what hosts said of themselves, and a sentence for each that could not be asked or did not answer in time."""
    result = result_of(ctx, ended)
    replies, failures, addresses = replies_of(result), result.get("failures") or [], ctx.inventory.addresses
    expected = reconcile.covered(drive.playbook_path(PLAYBOOK), ctx.inventory) or hosts
    if isinstance(ended, drive.Ended):
        found = [trouble.text for trouble in reconcile.troubles(result, expected, playbook=PLAYBOOK, addresses=addresses)]
    else:  # it did not come to its end, so it has no recap
        found = [words.unreachable(f["host"], addresses.get(f["host"], ""), f["message"]).text for f in failures if f.get("unreachable")]
        found += [ended.trouble.text] if ended.trouble and ended.trouble.code not in UNANSWERED else []
    running = {host: [str(said) for said in reply.get("could_not_stop") or []] for host, reply in replies.items() if reply.get("state") == "running"}
    named = {str(failure.get("host")) for failure in failures}
    found += [words.not_heard(host, addresses.get(host, "")) for host in expected if host not in replies and host not in named]
    return running, found
