"""Which runs of the main gate nobody may compare yet (DESIGN 4.11: no second throw of the dice).

Whoever saw the arms compared before an attempt is judged could end one that goes badly, by a cancel as well as by leaving an error alone, and
start afresh. So a run stays sealed until a judgement of its attempt has said what it is worth, or until the gate is over for good: it is
passed, or both parties closed the engagement. Used up attempts and a stop are no such end, since both can be undone. A rehearsal is practice
and hides nothing; of an extended attempt only the runs of the extension are sealed, since the first ones were judged and shown.

Every run asks the same of the engine, so its length compares the arms as well: no face tells how long a run took, when one is expected to end
(which is reckoned from the runs before it), or when its playbooks said something. What stays is a person who looks on with a watch: that a run
goes on and since when is progress, and whoever stays at the page can note when the next one begins.
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
    """Tell whether the begin and end of a step may be shown: both together are the length of a run; of one that goes on there is only a begin."""
    return foretold(step, first) or step.status not in OVER


def foretold(step: Step, first: int | None) -> bool:
    """Tell whether a step's expected end, and when its target answered last, may be shown: both follow from the length of earlier runs."""
    return not (sealed(step, first) and step.kind == StepKind.JOB)
