"""Who sees which engagement: one place, asked by every use case before it does anything."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.accounts.roles import Party, Permission, Role
from app.engagements import repository
from app.engagements.models import Engagement
from app.kit.errors import NotFound
from app.kit.i18n import N_


def sees(actor: Actor, engagement: Engagement) -> bool:
    """Tell whether an actor sees an engagement.

    The vendor's people see all, since they run the service; a customer's people see those that name them: never another customer's.
    """
    if not actor.may(Permission.VIEW):
        return False
    return actor.is_admin or actor.party == Party.VENDOR or named(actor, engagement) or engagement.created_by == actor.user_id


def named(actor: Actor, engagement: Engagement) -> bool:
    """Tell whether the engagement names this person for the person's own party."""
    return bool(_entries(actor, engagement))


def approves(actor: Actor, engagement: Engagement) -> bool:
    """Tell whether the engagement names this person as an approver of the person's own party: an account may be one elsewhere only."""
    return any(str(Role.APPROVER) in person["roles"] for person in _entries(actor, engagement))


def _entries(actor: Actor, engagement: Engagement) -> list[dict[str, Any]]:
    return [person for person in engagement.people.get(actor.party, []) if str(person["login"]).lower() == actor.login.lower()]


def find(s: Session, engagement_id: str, actor: Actor, *, lock: bool = False) -> Engagement:
    """Return an engagement that the actor sees. Raises NotFound in both cases alike, so that ids tell nothing.

    `lock` is for use cases that first ask the rules and then write: two of them at the same moment must not both be allowed.
    """
    found = repository.engagement(s, engagement_id, lock=lock)
    if found is None or not sees(actor, found):
        raise NotFound("no_such_engagement", N_("There is no engagement {id}."), id=engagement_id)
    return found
