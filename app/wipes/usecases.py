"""Wiping the drives of a unit on loan: ordered by serial number, approved by both parties, withdrawn while nothing was begun.

Nothing is wiped here: app/engine/wiping.py carries an order out, and asks `approved` for the approvals, without which there is no play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import PARTIES, Permission
from app.approvals import repository as approvals
from app.approvals.models import Approval
from app.audit.chain import record
from app.engagements import access
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.evidence import store
from app.kit.clock import now
from app.kit.db import new_id
from app.kit.errors import BadInput, FieldProblem, NotFound, Refused
from app.kit.i18n import N_
from app.kit.words import choices, in_words
from app.wipes import repository
from app.wipes.models import WipeOrder
from app.wipes.views import WAYS, digest, label, serials_of, views_of, wipe_view

SHORTEST, LONGEST = 2, 2000  # two characters are a word in Chinese


def order_wipe(s: Session, *, engagement_id: str, way: str, serials: Sequence[str], reason: str, actor: Actor) -> WipeOrder:
    """Order a wipe of drives by their serial numbers. Nothing happens before both parties approve it.

    Raises BadInput that names each field: a serial number must be that of a drive on the packing list, in a host of the group storage.
    """
    require(actor, Permission.ORDER_WIPE)
    engagement = access.find(s, engagement_id, actor, lock=True)
    wanted, reason = sorted(set(serials)), reason.strip()
    known = drives_of(engagement)
    problems = [] if wanted else [FieldProblem("/serials", N_("Name at least one drive by its serial number."))]
    problems += [
        FieldProblem(
            "/serials", N_("{serial} is no drive of the packing list in a storage host, so it is not ours to wipe."), {"serial": serial[:80]}
        )
        for serial in wanted
        if serial not in known
    ]
    if way not in WAYS:
        problems.append(FieldProblem("/way", N_("Choose one of these values: {expected}."), {"expected": choices("wipe_way", WAYS)}))
    problems += _said("/reason", reason)
    if problems:
        raise BadInput("bad_wipe", N_("This wipe cannot be ordered. Problems: {count}."), problems, count=len(problems))
    row = WipeOrder(
        id=new_id(),
        engagement_id=engagement_id,
        number=repository.next_number(s, engagement_id),
        way=way,
        drives=sorted((known[serial] for serial in wanted), key=lambda drive: (drive["host"], drive["serial"])),
        reason=reason,
        ordered_by=actor.name,
        ordered_party=actor.party,
        ordered_at=now(),
    )
    s.add(row)
    s.flush()
    told = {"engagement": engagement.code, "label": label(row), "way": way, "serials": serials_of(row), "hash": digest(row)}
    record(s, actor=actor, action="wipe.order", object_kind="wipe_order", object_id=row.id, data=told)
    return row


def withdraw_wipe(s: Session, *, wipe_id: str, reason: str, actor: Actor) -> WipeOrder:
    """Withdraw an order, approved or not. Raises Refused once it was begun, or was withdrawn."""
    require(actor, Permission.ORDER_WIPE)
    row, engagement = find(s, wipe_id, actor, lock=True)
    if row.started_at is not None:
        raise Refused("wipe_started", N_("{label} was begun already; what is wiped cannot be brought back."), label=label(row))
    if row.withdrawn_at is not None:
        raise Refused("wipe_withdrawn", N_("{label} was withdrawn, by {name}."), label=label(row), name=row.withdrawn_by)
    if problems := _said("/reason", reason.strip()):
        raise BadInput("bad_withdrawal", N_("{label} stands: say why it is withdrawn."), problems, label=label(row))
    row.withdrawn_by, row.withdrawn_why, row.withdrawn_at = actor.name, reason.strip(), now()
    s.flush()
    told = {"engagement": engagement.code, "label": label(row), "why": row.withdrawn_why}
    record(s, actor=actor, action="wipe.withdraw", object_kind="wipe_order", object_id=row.id, data=told)
    return row


def approved(s: Session, row: WipeOrder) -> dict[str, Approval]:
    """Return the approval of each party to exactly this order, as it stands: the only way to the wiping play. Raises Refused when one is missing.

    An approval counts when a person of that party gave it to the hash that the order has now; a rejection by anybody of a party undoes it.
    """
    if row.withdrawn_at is not None:
        raise Refused("wipe_withdrawn", N_("{label} was withdrawn, by {name}."), label=label(row), name=row.withdrawn_by)
    given = approvals.approvals_for(s, "wipe", row.id)
    said = engagement_facts.decisions(given, "wipe", row.id, {digest(row)})
    by_party = {a.party: a for a in given if a.decision == "approve" and a.object_hash == digest(row)}
    if not said.agreed or said.rejected or set(by_party) != PARTIES or len({a.user_id for a in by_party.values()}) != len(PARTIES):
        missing = in_words("party", *(said.missing or said.rejected or sorted(PARTIES)))
        sentence = N_("Nothing was wiped: {label} ({serials}) lacks the approval of: {missing}. They decide in the sign-off inbox.")
        raise Refused("wipe_not_approved", sentence, label=label(row), serials=", ".join(serials_of(row)), missing=missing)
    return by_party


def drives_of(engagement: Engagement) -> dict[str, dict[str, str]]:
    """Return the drives that can be wiped, by serial number: those of the packing list that say in which storage host they are."""
    hosts: Mapping[str, Any] = engagement.targets["hosts"]
    storage = {name for name, host in hosts.items() if "storage" in host["groups"]}
    return {
        str(piece["serial"]): {"serial": str(piece["serial"]), "model": str(piece["model"]), "host": str(piece["host"])}
        for piece in engagement.packing_list
        if piece["kind"] == "drive" and piece.get("host") in storage
    }


def wipes(s: Session, *, engagement_id: str, actor: Actor) -> dict[str, Any]:
    """Return the orders of an engagement, the newest first, and the drives that can be ordered: {items, drives}."""
    require(actor, Permission.VIEW)
    engagement = access.find(s, engagement_id, actor)
    return {"items": views_of(s, engagement.id, approvals.approvals_of(s, engagement.id)), "drives": list(drives_of(engagement).values())}


def wipe_seen(s: Session, *, wipe_id: str, actor: Actor) -> dict[str, Any]:
    """Return one order with its approvals and records. Raises NotFound for an unknown one and for one that the actor does not see, alike."""
    require(actor, Permission.VIEW)
    row, engagement = find(s, wipe_id, actor)
    shown = wipe_view(row, approvals.approvals_of(s, engagement.id), repository.files_of(s, row.id))
    return shown | {"engagement_id": engagement.id, "engagement": engagement.code}


def wipe_file(s: Session, *, file_id: str, actor: Actor) -> tuple[str, bytes]:
    """Return a file that a wipe brought home: a name for it, and its bytes, which are those of its hash."""
    require(actor, Permission.EXPORT_EVIDENCE)
    found = repository.file(s, file_id)
    if found is None:
        raise NotFound("no_such_file", N_("There is no file {id} of a wipe."), id=file_id)
    row, engagement = find(s, found.wipe_order_id, actor)
    return f"{engagement.code}-{label(row)}-{found.host}-{found.name}", store.read(found.sha256)


def find(s: Session, wipe_id: str, actor: Actor, *, lock: bool = False) -> tuple[WipeOrder, Engagement]:
    """Return an order that the actor sees, with its engagement. Raises NotFound. `lock` is for who writes it."""
    row = repository.order(s, wipe_id)
    if row is None:
        raise NotFound("no_such_wipe", N_("There is no wipe order {id}."), id=wipe_id)
    engagement = access.find(s, row.engagement_id, actor, lock=lock)
    if lock:
        row = repository.order(s, wipe_id, lock=True) or row
    return row, engagement


def _said(pointer: str, text: str) -> list[FieldProblem]:
    if SHORTEST <= len(text) <= LONGEST and not any(c < " " and c not in "\r\n\t" for c in text):
        return []
    return [FieldProblem(pointer, N_("Text of {least} to {most} characters is needed."), {"least": SHORTEST, "most": LONGEST})]
