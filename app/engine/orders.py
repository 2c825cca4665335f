"""What orders that are no attempts have in common (a removal, a wipe): a playbook run with the order's id and fence where an attempt's stand."""

from __future__ import annotations

from typing import Any

from app.engagements.models import Engagement
from app.engine import drive
from app.engine.context import probe_archive, site_of
from app.engine.runs import PlaybookRun
from app.settings import settings
from app.targets.inventory import Inventory, build


def inventory_of(engagement: Engagement) -> Inventory:
    """Return the inventory of an engagement. Raises Refused when a host is not described safely."""
    return build(code=engagement.code, targets=engagement.targets, state_dir=settings().state_dir)


def run_of(
    order_id: str, fence: int, engagement: Engagement, *, step: str, name: str, playbook: str, timeout_s: int, plan: dict[str, Any], **more: Any
) -> PlaybookRun:
    """Return one playbook run of an order; `more` are variables beside those that docs/architecture.md lists."""
    attempt = {"id": order_id, "gate": "", "number": 0, "fence": fence, "seed": 0, "engagement": engagement.code, "rehearsal": False}
    known = {
        "attempt": attempt,
        "step": {"key": step},
        "plan": plan,
        "site": site_of(engagement, engagement.packing_list),
        "probe": str(probe_archive()),
        "job": {},
    }
    return PlaybookRun(
        attempt_id=order_id,
        step_key=step,
        name=name,
        playbook=drive.playbook_path(playbook),
        inventory=inventory_of(engagement),
        variables={**known, **more},
        timeout_s=timeout_s,
        node=settings().node,
    )
