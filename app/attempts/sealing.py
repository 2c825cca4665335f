"""Which runs of the main gate nobody may compare yet (DESIGN 4.11: no second throw of the dice).

Whoever saw the arms compared before an attempt is judged could end one that goes badly, by a cancel as well as by leaving an error alone, and
start afresh. So a run stays sealed until a judgement of its attempt has said what it is worth, or until the gate is over for good: it is
passed, or both parties closed the engagement. Used up attempts and a stop are no such end, since both can be undone. A rehearsal is practice
and hides nothing; of an extended attempt only the runs of the extension are sealed, since the first ones were judged and shown.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Step
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from gates.model import StepKind
from gates.pipeline_facts import Facts

SEALED_GATE = "G3"
OVER = ("done", "failed", "canceled")


def sealed_from(s: Session, attempt: Attempt, engagement: Engagement, facts: Facts | None = None) -> int | None:
    """Return the position of the first step whose figures are sealed; None when nothing is."""
    if attempt.gate != SEALED_GATE or attempt.rehearsal:
        return None
    extension = attempt.extension
    if extension["judged"] is not None if extension else attempt.verdict is not None:
        return None
    known = facts or engagement_facts.gather(s, engagement)
    if known.closed or any(a.passed for a in known.at(SEALED_GATE)):
        return None
    return int(extension["position"]) if extension else 0


def sealed(step: Step, first: int | None) -> bool:
    """Tell whether the figures of a step are sealed, given the first position that is."""
    return first is not None and step.position >= first


def timed(step: Step, first: int | None) -> bool:
    """Tell whether the times of a step may be shown: every run asks the same of the engine, so how long one took compares the arms too."""
    return not (sealed(step, first) and step.kind == StepKind.JOB and step.status in OVER)
