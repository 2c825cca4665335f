"""All that a step needs to decide how to go on, read in one short session and then detached from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from app.attempts.models import Attempt, Step
from app.engagements.models import Engagement
from app.kit.db import database_now, read_session
from app.packing import repository as packing
from app.plans.models import PlanRevision
from app.settings import settings
from app.targets.inventory import Inventory, build
from app.targets.probe_archive import SOURCE, build_probe
from gates.text import Text

if TYPE_CHECKING:
    from app.engine.rounds import Round


@dataclass
class Ctx:
    """One attempt at one moment, under a lease of ours."""

    attempt: Attempt
    steps: list[Step]
    engagement: Engagement
    plan: dict[str, Any]
    now: datetime  # the database's clock
    owner: str
    node: str
    still_ours: Callable[[], None] = lambda: None  # asked at every piece of a long work; raises keep.LeaseLost
    together: Round | None = None  # what begins together with this move; None: whatever it starts begins at once
    taken_from: str | None = None  # the silent node from which this very move took the attempt over
    packing_list: list[Any] = field(default_factory=list)  # that the attempt began under
    beside: bool = False  # another attempt of the site is about to be polled, so this one may be polled a little early

    @property
    def step(self) -> Step | None:
        """Return the step that the attempt is at, None when all are done."""
        return self.steps[self.attempt.step_index] if self.attempt.step_index < len(self.steps) else None

    @property
    def current(self) -> Step:
        """Return the step that the attempt is at; there must be one."""
        step = self.step
        if step is None:
            raise LookupError(f"attempt {self.attempt.id} has no step {self.attempt.step_index}")
        return step

    @cached_property
    def inventory(self) -> Inventory:
        """Return the engagement's inventory. Raises Refused when a host is not described safely."""
        return build(code=self.engagement.code, targets=self.engagement.targets, state_dir=settings().state_dir)

    @property
    def claim_id(self) -> str:
        """Return what names this very claim: whatever it leaves in a folder is its own."""
        return self.owner.rpartition(":")[2]

    @property
    def time_scale(self) -> Decimal:
        """Return how many seconds of the plan one second of the clock stands for."""
        return Decimal(str((self.plan.get("rig") or {}).get("time_scale") or 1))

    def variables(self, *, job: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the variables of a playbook, as docs/architecture.md lists them; `staging` is added by the run directory."""
        attempt, engagement = self.attempt, self.engagement
        known: dict[str, Any] = {
            "attempt": {
                "id": attempt.id,
                "gate": attempt.gate,
                "number": attempt.number,
                "fence": attempt.fence,
                "seed": attempt.seed,
                "engagement": engagement.code,
                "rehearsal": attempt.rehearsal,
            },
            "plan": self.plan,
            "site": site_of(engagement, self.packing_list),
            "probe": str(probe_archive()),
            "job": job or {},
        }
        if self.step is not None:
            known["step"] = {"key": self.step.key, "timeout_s": self.step.spec.get("timeout_s"), **(self.step.spec.get("params") or {})}
        return known


def site_of(engagement: Engagement, packing_list: list[Any]) -> dict[str, Any]:
    """Return the variable `site`: every key of the section `targets` but the hosts, with order and packing list."""
    handed_on = {key: value for key, value in engagement.targets.items() if key != "hosts"}
    return {**handed_on, "order": engagement.order, "packing_list": packing_list}


def load(attempt_id: str, *, owner: str, node: str, still_ours: Callable[[], None] = lambda: None) -> Ctx:
    """Read an attempt with its steps, engagement and plan."""
    with read_session() as s:
        attempt = s.get_one(Attempt, attempt_id)
        engagement = s.get_one(Engagement, attempt.engagement_id)
        plan = s.get_one(PlanRevision, attempt.plan_id)
        steps = list(s.scalars(select(Step).where(Step.attempt_id == attempt_id).order_by(Step.position)))
        packed = packing.list_of(s, engagement, attempt.packing_number)
        return Ctx(attempt, steps, engagement, json.loads(plan.canonical), database_now(s), owner, node, still_ours, packing_list=packed)


def probe_archive() -> Path:
    """Return the probe as one file, built when it is not there or older than one of its sources."""
    dest = settings().state_dir / "probe" / "probe.pyz"
    newest = max((path.stat().st_mtime_ns for path in SOURCE.glob("*.py")), default=0)
    if not dest.exists() or dest.stat().st_mtime_ns < newest:
        build_probe(dest)
    return dest


def title_of(step: Step) -> Text:
    """Return the title of a step in both languages."""
    return Text.parse(step.title)
