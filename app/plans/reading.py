"""From a stored revision to the whole, typed plan."""

from __future__ import annotations

import json
from functools import lru_cache

from app.plans.models import PlanRevision
from gates.plan import Plan, load_plan


def plan_of(revision: PlanRevision) -> Plan:
    """Return the whole plan of a revision."""
    return parsed(revision.canonical)


@lru_cache(maxsize=64)
def parsed(canonical: str) -> Plan:
    """Return the plan of its canonical JSON; a frozen thing, so it can be kept."""
    return load_plan(json.loads(canonical))
