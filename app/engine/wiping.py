"""Carrying out an order to wipe drives: once, by a detached playbook host, told drive by drive; what it brings home is kept under its hashes.

The play is given the order and the approvals that `app.wipes.usecases.approved` found for exactly that order, and checks both again
(playbooks/filter_plugins/wiping.py). A playbook host that was lost is not followed by another: the drives may still be at work.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.approvals.models import Approval
from app.attempts import repository as attempts
from app.audit.chain import record
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.engine import locks, orders, packs, removal, runs
from app.engine.models import TargetRemoval
from app.engine.policy import ORDER_MAX_S
from app.engine.runs import Look
from app.engine.spoken import both_of
from app.evidence import store
from app.kit.clock import now, stamp
from app.kit.db import new_id, read_session, write_session
from app.kit.errors import Refused
from app.kit.i18n import N_, pair
from app.plans.usecases import current
from app.wipes import usecases as wipes
from app.wipes.models import WipeFile, WipeOrder
from app.wipes.views import WIPED, content, digest, hosts_of, label, serials_of
from gates.canonical import canonical_bytes
from gates.text import Text

PLAYBOOK, STEP, RUN = "wipe.yml", "wipe", "run-1"
RECORD = "wipe-record.json"
DRIVE_S = 6 * 3600 + 600  # the kit waits six hours for one sanitize (playbooks/roles/hardware/files/kit/hardware/wipe.py); drives come one by one
OUTCOMES = (WIPED, "failed", "begun")
TOLD = ("model", "firmware", "capacity_bytes", "device", "method", "argv", "began_unix_s", "ended_unix_s")


def begin(s: Session, *, order_id: str, actor: Actor) -> WipeOrder:
    """Begin the wipe, or return the order that was begun already, so that whoever asks again follows it.

    Raises Refused without both parties' approval of the order as it stands, while an attempt goes on, while something of ours is left on the
    targets, or when another one still holds a target.
    """
    require(actor, Permission.REMOVE_FROM_TARGETS)
    order, engagement = wipes.find(s, order_id, actor, lock=True)
    if order.started_at is not None:
        return order
    given = wipes.approved(s, order)
    if running := engagement_facts.gather(s, engagement).active():
        sentence = N_("Nothing was wiped: {gate}, attempt {number}, is going on. Wait for its end, or cancel it.")
        raise Refused("attempt_active", sentence, gate=running.gate, number=running.number)
    _require_removed(s, engagement)
    inventory = orders.inventory_of(engagement)
    if absent := [host for host in hosts_of(order) if host not in inventory.members("storage")]:
        sentence = N_("Nothing was wiped: {hosts} is no storage host of this engagement any more. Withdraw the order and order another one.")
        raise Refused("no_storage_host", sentence, hosts=", ".join(absent))
    fence = locks.seize(s, order.id, inventory.machines)
    if isinstance(fence, str):
        raise Refused("target_busy", N_("Nothing was wiped: the attempt {id} still holds a target."), id=fence)
    order.fence, order.started_by, order.started_at = fence, actor.label, now()
    s.flush()
    about = {"engagement": engagement.code, "label": label(order), "hash": digest(order), "serials": serials_of(order)}
    told = {**about, "approvals": {party: a.id for party, a in sorted(given.items())}}
    record(s, actor=actor, action="wipe.start", object_kind="wipe_order", object_id=order.id, data=told)
    return order


def go_on(order_id: str, actor: Actor) -> WipeOrder:
    """Start the play, look at it, or keep what it brought; call again until `finished_at` is set. Safe for two callers at once."""
    with read_session() as s:
        order = s.get_one(WipeOrder, order_id)
        engagement = s.get_one(Engagement, order.engagement_id)
        plan: dict[str, Any] = json.loads(current(s, engagement.id).canonical)
        given = wipes.approved(s, order)
    if order.finished_at is not None or order.started_at is None:
        return order
    folder = runs.folder_of(order.id, STEP, RUN)
    seen = runs.look(folder)
    if seen.look is Look.NEVER:
        sealed = base64.b64encode(canonical_bytes(content(order))).decode()  # the reason in it is a person's words, and never a template
        wanted = {"order": sealed, "hash": digest(order), "hosts": ":".join(hosts_of(order)), "approvals": _told(given)}
        limit_s = time_limit_s(len(order.drives))
        runs.start(
            orders.run_of(order.id, order.fence, engagement, step=STEP, name=RUN, playbook=PLAYBOOK, timeout_s=limit_s, plan=plan, wipe=wanted)
        )
    elif seen.look is Look.DONE:
        return _end(order, engagement, seen.result, actor)
    elif seen.look is Look.LOST:
        runs.clean(order.id, folder)
        lost = pair(N_("The playbook host was lost. Drives without a record may still be at work, or untouched: look at each, then order anew."))
        return _end(order, engagement, {}, actor, lost)
    return order


def time_limit_s(drives: int) -> int:
    """Return how long a wipe of so many drives may take, in s. Of more than 27 not each may take as long as a sanitize can: order them apart."""
    return min(ORDER_MAX_S, 1800 + DRIVE_S * drives)


def report_of(order: WipeOrder, records: Mapping[str, Any], result: Mapping[str, Any], problem: Text | None = None) -> dict[str, Any]:
    """Return what became of each drive that was ordered, by identity. `records`: by host what its wipe-record.json says, whatever that is.

    Wiped is only what its own host's record calls wiped, exactly once; what no record speaks of is not known.
    """
    failures = {str(f.get("host")): f for f in result.get("failures") or []}
    drives = []
    for drive in order.drives:
        found = [row for row in _rows(records.get(drive["host"])) if row.get("serial") == drive["serial"]]
        said = found[0] if len(found) == 1 and found[0].get("outcome") in OUTCOMES else {}
        outcome = {WIPED: WIPED, "failed": "failed"}.get(str(said.get("outcome")), "unknown")
        told = {key: said[key] for key in TOLD if key in said and key != "model"}
        drives.append({**drive, "outcome": outcome, **_why(outcome, said, failures.get(drive["host"], {}), str(result.get("problem") or "")), **told})
    return {"drives": drives, "problem": problem.json() if problem else None}


def _why(outcome: str, said: Mapping[str, Any], failure: Mapping[str, Any], problem: str) -> dict[str, Any]:
    """Return {why, why_both?}: why a drive is not wiped, by its own record, else by what failed on its host."""
    if outcome == WIPED:
        return {"why": ""}
    if said.get("why"):
        both = {"why_both": {"en": str(said["why"])[:2000], "zh-CN": str(said["why_zh"])[:2000]}} if said.get("why_zh") else {}
        return {"why": str(said["why"])[:2000], **both}
    return {"why": (str(failure.get("message") or "") or problem)[:2000], **both_of(failure)}


def _require_removed(s: Session, engagement: Engagement) -> None:
    """Refuse while a removal is due: what is mounted on the drives would be wiped under a volume that is in use."""
    tries = attempts.attempts_of(s, engagement.id)
    query = select(TargetRemoval).where(TargetRemoval.engagement_id == engagement.id).order_by(TargetRemoval.started_at.desc()).limit(1)
    last = s.execute(query).scalars().first()
    report = last.report if last is not None and last.finished_at is not None else None
    clean = report is not None and bool(report["hosts"]) and removal.clean(report)
    if tries and not (clean and last is not None and last.started_at >= max(a.finished_at or a.created_at for a in tries)):
        sentence = N_("Nothing was wiped: what was deployed for {gate}, attempt {number}, is not removed from every target yet. Run first: {command}")
        command = f"quadgate targets remove {engagement.code}"
        raise Refused("not_removed", sentence, gate=tries[-1].gate, number=tries[-1].number, command=command)


def _told(given: Mapping[str, Approval]) -> list[dict[str, Any]]:
    """Return the approvals as the play checks and keeps them."""
    keys = ("id", "object_kind", "object_id", "object_hash", "party", "user_id", "decision")
    return [{key: getattr(given[party], key) for key in keys} | {"at": stamp(given[party].at)} for party in sorted(given)]


def _rows(document: Any) -> list[Mapping[str, Any]]:
    """Return the records of a wipe-record.json; none where it is not what it should be."""
    facts = document.get("facts") if isinstance(document, Mapping) else None
    records = facts.get("records") if isinstance(facts, Mapping) else None
    return [row for row in records if isinstance(row, Mapping)] if isinstance(records, list) else []


def _end(order: WipeOrder, engagement: Engagement, result: Mapping[str, Any], actor: Actor, problem: Text | None = None) -> WipeOrder:
    """Keep the files that came home, say what became of each drive, and let go of the targets, once."""
    folder = runs.folder_of(order.id, STEP, RUN)
    files, troubles = packs.read_all(folder / "staging", hosts_of(order), folder / "unpacked" / new_id())
    kept = [(file, store.put_file(file.path)) for file in files]
    records = {file.host: _parsed(store.read(stored.sha256)) for file, stored in kept if file.name == RECORD}
    report = report_of(order, records, result, problem or (troubles[0].text if troubles else None))
    with write_session() as s:
        row = s.get_one(WipeOrder, order.id, with_for_update=True)
        if row.finished_at is None:
            s.add_all(
                WipeFile(id=new_id(), wipe_order_id=row.id, host=file.host, name=file.name, sha256=stored.sha256, size=stored.size)
                for file, stored in kept
            )
            row.report, row.finished_at = report, now()
            locks.release(s, row.id)
            s.flush()
            brought = [{"host": file.host, "name": file.name, "sha256": stored.sha256} for file, stored in kept]
            drives = [{key: drive[key] for key in ("serial", "host", "outcome")} for drive in report["drives"]]
            told = {"engagement": engagement.code, "label": label(row), "drives": drives, "files": brought}
            record(s, actor=actor, action="wipe.end", object_kind="wipe_order", object_id=row.id, data=told)
        return row


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
