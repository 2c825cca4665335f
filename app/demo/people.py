"""The people of a demo. Each acts for one party only, through the same use cases as the web pages."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor
from app.accounts.usecases import create_user, sign_in
from app.approvals.usecases import approve, pending

# What two approvers of a demo say yes to. A stop is never lifted and no rig cause is ever granted here.
ROUTINE = ("plan", "conditional", "sign_off")


def hire(session: Session, people: dict[str, Any]) -> dict[str, list[Actor]]:
    """Make the users of the engagement file and sign each in; returns the actors by party."""
    actors: dict[str, list[Actor]] = {}
    for party, members in people.items():
        for member in members:
            password = secrets.token_urlsafe(18)  # known to nobody; a person who wants to sign in is given a new one
            create_user(
                session,
                login=member["login"],
                name=member["name"],
                title=member.get("title", ""),
                party=party,
                roles=member["roles"],
                password=password,
                actor=SYSTEM,
            )
            actors.setdefault(party, []).append(sign_in(session, login=member["login"], password=password).actor)
    return actors


def having(actors: dict[str, list[Actor]], role: str, party: str | None = None) -> Actor:
    """Return the first person with a role, of one party or of any."""
    return next(a for p, members in actors.items() for a in members if role in a.roles and party in (None, p))


def work_down_inboxes(session: Session, actors: dict[str, list[Actor]], *, scan: bytes | None = None) -> int:
    """Let one approver of each party agree to what waits for them; returns how many approvals were given."""
    given = 0
    for party in actors:
        approver = having(actors, "approver", party)
        for item in pending(session, actor=approver):
            if item["object_kind"] not in ROUTINE or not item["mine"]:
                continue
            approve(
                session,
                object_kind=item["object_kind"],
                object_id=item["object_id"],
                object_hash=item["object_hash"],
                decision="approve",
                comment="演示 / demo",
                actor=approver,
                scan=scan if item["object_kind"] == "sign_off" else None,
                scan_name="no-scan.png",
            )
            given += 1
    return given
