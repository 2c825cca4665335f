"""Taking everything of ours away from an engagement's targets: one order, carried out by a detached playbook host, told host by host.

The order is a row that holds the targets' locks until it has ended. Whoever asks again while it is going on adopts it: a command
line that was ended midway loses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.audit.chain import record
from app.engagements import access
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.engine import locks, orders, runs
from app.engine.models import TargetRemoval
from app.engine.policy import TRIES_MAX
from app.engine.runs import Look
from app.engine.spoken import both_of
from app.kit.clock import now, stamp
from app.kit.db import new_id, read_session, write_session
from app.kit.errors import Refused
from app.kit.i18n import N_, pair
from app.plans.usecases import current
from app.targets.inventory import Inventory
from gates.text import Text

PLAYBOOK, STEP = "remove.yml", "remove"
TIMEOUT_S = 900


def begin(s: Session, *, engagement_id: str, actor: Actor) -> TargetRemoval:
    """Order the removal, or return the order that is going on already.

    Raises Refused while an attempt goes on, when another one still holds a target, or when a host is not described safely.
    """
    require(actor, Permission.REMOVE_FROM_TARGETS)
    engagement = access.find(s, engagement_id, actor, lock=True)
    unfinished = select(TargetRemoval).where(TargetRemoval.engagement_id == engagement_id, TargetRemoval.finished_at.is_(None))
    if going_on := s.execute(unfinished).scalars().first():
        return going_on
    if running := engagement_facts.gather(s, engagement).active():
        sentence = N_("Nothing was removed: {gate}, attempt {number}, is going on. Wait for its end, or cancel it.")
        raise Refused("attempt_active", sentence, gate=running.gate, number=running.number)
    inventory = orders.inventory_of(engagement)
    hosts = inventory.hosts
    order = TargetRemoval(id=new_id(), engagement_id=engagement_id, tries=1, started_by=actor.label, started_at=now())
    fence = locks.seize(s, order.id, inventory.machines)
    if isinstance(fence, str):
        raise Refused("target_busy", N_("Nothing was removed: the attempt {id} still holds a target."), id=fence)
    order.fence = fence
    s.add(order)
    s.flush()
    told = {"engagement": engagement.code, "hosts": hosts}
    record(s, actor=actor, action="targets.remove", object_kind="target_removal", object_id=order.id, data=told)
    return order


def go_on(order_id: str, actor: Actor) -> TargetRemoval:
    """Start the playbook, look at it, or keep what it told; call again until `finished_at` is set. Safe for two callers at once."""
    with read_session() as s:
        order = s.get_one(TargetRemoval, order_id)
        engagement = s.get_one(Engagement, order.engagement_id)
        plan: dict[str, Any] = json.loads(current(s, engagement.id).canonical)
    if order.finished_at is not None:
        return order
    inventory = orders.inventory_of(engagement)
    folder = runs.folder_of(order.id, STEP, f"run-{order.tries}")
    seen = runs.look(folder)
    if seen.look is Look.NEVER:
        name = f"run-{order.tries}"
        runs.start(orders.run_of(order.id, order.fence, engagement, step=STEP, name=name, playbook=PLAYBOOK, timeout_s=TIMEOUT_S, plan=plan))
    elif seen.look is Look.DONE:
        return _end(order, engagement, told_of(inventory, seen.result), actor)
    elif seen.look is Look.LOST:
        runs.clean(order.id, folder)
        if order.tries >= TRIES_MAX:
            return _end(order, engagement, told_of(inventory, {}, pair(N_("The playbook host was lost {n} times."), n=order.tries)), actor)
        with write_session() as s:
            again = update(TargetRemoval).where(TargetRemoval.id == order.id, TargetRemoval.tries == order.tries).values(tries=order.tries + 1)
            s.execute(again)
    return order


def latest(s: Session, engagement_id: str) -> dict[str, Any] | None:
    """Return the newest order of an engagement as the pages show it; None when there was none."""
    query = select(TargetRemoval).where(TargetRemoval.engagement_id == engagement_id).order_by(TargetRemoval.started_at.desc()).limit(1)
    order = s.execute(query).scalar_one_or_none()
    if order is None:
        return None
    hosts = (order.report or {}).get("hosts") or {}
    return {"started_by": order.started_by, "started_at": stamp(order.started_at), "finished_at": stamp(order.finished_at), "hosts": hosts}


def told_of(inventory: Inventory, result: Mapping[str, Any], problem: Text | None = None) -> dict[str, Any]:
    """Return what became of each host: removed, with its root; left, with the reason; unknown, when nothing was heard of it."""
    replies: Mapping[str, Any] = result.get("replies") or {}
    failures = {str(f.get("host")): f for f in result.get("failures") or []}
    hosts: dict[str, dict[str, Any]] = {}
    for host in inventory.hosts:
        reply, failure = replies.get(host), failures.get(host)
        root = str(inventory.hostvars[host].get("qg_root") or "")
        if failure is not None:
            hosts[host] = {
                "state": "unknown" if failure.get("unreachable") else "left",
                "root": root,
                "why": str(failure.get("message") or ""),
                **both_of(failure),
            }
        elif isinstance(reply, Mapping) and reply.get("state") == "removed":
            hosts[host] = {"state": "removed", "root": str(reply.get("root") or root), "why": ""}
        else:
            hosts[host] = {"state": "unknown", "root": root, "why": str(result.get("problem") or "")}
    return {"hosts": hosts, "problem": problem.json() if problem else None}


def clean(report: Mapping[str, Any]) -> bool:
    """Tell whether everything is gone from every host."""
    return all(host["state"] == "removed" for host in report["hosts"].values())


def _end(order: TargetRemoval, engagement: Engagement, report: dict[str, Any], actor: Actor) -> TargetRemoval:
    """Keep the report and let go of the targets, once."""
    with write_session() as s:
        row = s.get_one(TargetRemoval, order.id, with_for_update=True)
        if row.finished_at is None:
            row.report, row.finished_at = report, now()
            locks.release(s, row.id)
            s.flush()
            told = {"engagement": engagement.code, **report}
            record(s, actor=actor, action="targets.removed", object_kind="target_removal", object_id=row.id, data=told)
        return row
