"""The odds of a plan before it is sealed (DESIGN 4.6): what gates.odds says of it, once a plan."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.engagements.access import find
from app.plans.reading import parsed
from app.plans.usecases import current


def odds(s: Session, *, engagement_id: str, actor: Actor) -> dict[str, Any]:
    """Return the chances of G3 under the newest revision of a plan, thin margins, and the cost: the dataset of `quadgate plan odds`."""
    require(actor, Permission.VIEW)
    engagement = find(s, engagement_id, actor)
    revision = current(s, engagement_id)
    known = {"targets": {"engine": (engagement.targets or {}).get("engine")}, "g2_baseline": engagement.g2_baseline}
    return json.loads(_odds(revision.canonical, json.dumps(known, sort_keys=True, default=str)))  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _odds(canonical: str, known: str) -> str:
    """Return the dataset as JSON: thousands of drawn attempts, so it is kept (under a second the first time, and the same each time)."""
    from gates.odds.document import at_sealing  # numpy, which nothing else of the service needs

    return json.dumps(at_sealing(parsed(canonical), **json.loads(known)), ensure_ascii=False)
