"""Finding attempts and steps for an actor."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.attempts import repository
from app.attempts.models import Attempt, Step
from app.engagements.access import find
from app.engagements.models import Engagement
from app.kit.errors import NotFound
from app.kit.i18n import N_


def find_attempt(s: Session, attempt_id: str, actor: Actor, *, lock: bool = False) -> tuple[Attempt, Engagement]:
    """Return an attempt whose engagement the actor sees. Raises NotFound in both cases alike. `lock`: as `engagements.access.find`."""
    attempt = repository.attempt(s, attempt_id)
    if attempt is None:
        raise NotFound("no_such_attempt", N_("There is no attempt {id}."), id=attempt_id)
    try:
        return attempt, find(s, attempt.engagement_id, actor, lock=lock)
    except NotFound:
        raise NotFound("no_such_attempt", N_("There is no attempt {id}."), id=attempt_id) from None


def find_step(s: Session, step_id: str, actor: Actor, *, lock: bool = False) -> tuple[Step, Attempt, Engagement]:
    """Return a step whose engagement the actor sees. Raises NotFound in both cases alike. `lock`: as `engagements.access.find`."""
    step = repository.step(s, step_id)
    if step is None:
        raise NotFound("no_such_step", N_("There is no step {id}."), id=step_id)
    return step, *find_attempt(s, step.attempt_id, actor, lock=lock)
