"""What if: a stored attempt looked at under another plan, or by this judge alone. Nothing is kept, nothing follows, it is no verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.kit.errors import BadInput, QuadgateError
from app.kit.i18n import N_
from app.plans.usecases import pointer_problems
from gates.bundle import Unreadable
from gates.plan import InvalidPlan, changed_plan
from gates.whatif import what_if as looked_at


def what_if(s: Session, *, attempt_id: str, differences: Mapping[str, Any] | None, actor: Actor) -> dict[str, Any]:
    """Return gates.whatif.what_if of the newest judgement's bundle under `differences` from its plan; None: what this judge alone answers otherwise.

    Only what was judged is looked at, so the sealing of the main gate holds: of an attempt without a verdict nothing is told, and of an
    extended one not the runs that are not judged. Raises Refused while there is no verdict, BadInput for a plan that cannot be used.
    """
    from app.evidence.usecases import judged_bundle  # evidence asks attempts for their rows in turn

    bundle = judged_bundle(s, attempt_id=attempt_id, actor=actor)
    try:
        plan = changed_plan(bundle.plan, differences) if differences is not None else None
        return looked_at(bundle, plan)
    except InvalidPlan as error:
        raise BadInput("bad_plan", N_("The plan cannot be used. Problems: {count}."), pointer_problems(error), count=len(error.problems)) from None
    except Unreadable as error:
        raise QuadgateError("evidence_unreadable", error.text) from error
