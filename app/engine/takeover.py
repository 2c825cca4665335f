"""Going on with an attempt whose controller, or whose node, was another one: its late commands are refused, and its playbook counts as lost."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Step
from app.engine import locks, runs


def take_over(s: Session, attempt_id: str, above: int = 0) -> None:
    """Raise the fence of an attempt, higher than `above` too, and mark its present run as lost when its folder is not here.

    The host process of that run lived where the folder is. Begun here under the same name, it would be a second one, and its events would be
    read from where the other's ended.
    """
    locks.raise_fence(s, attempt_id, above)
    attempt = s.get_one(Attempt, attempt_id)
    step = s.scalar(select(Step).where(Step.attempt_id == attempt_id, Step.position == attempt.step_index))
    if step is None or not (step.result or {}).get("run"):
        return
    folder = runs.folder_of(attempt_id, step.key, str((step.result or {})["run"]))
    if not folder.exists():
        runs.mark_lost(folder)
