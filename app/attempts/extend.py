"""Extending an inconclusive attempt, once, by the run pairs that its plan sealed for this (DESIGN 4.6, 4.11).

The same attempt goes on: the steps of the extension are laid out behind its own, and its verdict is open until all runs, old and new, are
judged together. `Attempt.extension` keeps what was done: {pairs, position: of the first new step, at, by, party, said, why: the summary that
was extended, from_verdict, from_manifest, verdict, because: as they stood, judged: hash of the verdict after it, or null}. When the extension
is canceled, the verdict before it stands again (app/engine/steps/cancel.py).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.attempts import access, layout, moves, repository
from app.attempts import revisions as judgements
from app.attempts.models import Attempt
from app.audit.chain import record
from app.engagements import facts as engagement_facts
from app.kit.clock import now, stamp
from app.kit.db import database_now
from app.kit.errors import BadInput, FieldProblem, Refused
from app.kit.i18n import N_
from app.plans import repository as plans
from app.plans.models import PlanRevision
from app.plans.reading import plan_of
from gates.pipeline import may_extend
from gates.text import Text
from gates.transitions import Event

LONGEST_WORD = 1000
BY_PAIRS = Text("By {pairs} run pairs.", "补充 {pairs} 个轮次对。")
BY_PAIRS_BECAUSE = Text("By {pairs} run pairs: {said}", "补充 {pairs} 个轮次对：{said}")


def extend(s: Session, *, attempt_id: str, said: str = "", actor: Actor) -> Attempt:
    """Let an inconclusive attempt go on with the planned run pairs. `said`: what the person adds to the record, if anything.

    Raises Refused with the rule's sentence when it may not be extended (gates.pipeline.may_extend), BadInput for a word that is too long.
    """
    require(actor, Permission.START_ATTEMPT)
    said = said.strip()
    if len(said) > LONGEST_WORD:
        field = FieldProblem("/said", N_("At most {most} characters are taken."), {"most": LONGEST_WORD})
        raise BadInput("too_long", N_("The attempt was not extended."), [field])
    attempt, engagement = access.find_attempt(s, attempt_id, actor, lock=True)
    refusal = may_extend(engagement_facts.gather(s, engagement), attempt_id)
    if refusal:
        raise Refused(refusal.code, refusal.text)
    judged = judgements.newest(s, attempt_id)
    specs = layout.extension_for(plan_of(plans.revision(s, attempt.plan_id) or PlanRevision()), attempt.gate)
    if judged is None or not specs:  # the rules above say that there are both
        raise Refused("not_by_pairs", N_("The plan of this attempt foresees no extension."))
    steps = repository.steps_of(s, attempt_id)
    position = len(steps)
    s.add_all(layout.step_row(attempt_id, position + n, spec) for n, spec in enumerate(specs))
    told: dict[str, Any] = {"pairs": attempt.may_extend_by, "from_verdict": judged.hash, "from_manifest": judged.manifest_hash}
    told |= {"at": stamp(now()), "by": actor.name, "party": actor.party, "said": said}
    kept = {"why": judged.document.get("summary"), "verdict": attempt.verdict, "because": attempt.because or []}
    attempt.extension = {**told, **kept, "position": position, "judged": None}
    attempt.verdict = attempt.because = attempt.problem = attempt.finished_at = None
    attempt.may_extend_by = 0
    attempt.counted_at = attempt.counted_at or now()  # it counted by its verdict, which is open now
    attempt.cancel_requested_at, attempt.cancel_reason = None, ""  # of a cancel that came too late for the first verdict
    moves.move(s, attempt, Event.EXTEND, actor, (BY_PAIRS_BECAUSE if said else BY_PAIRS).fill(pairs=told["pairs"], said=said))
    attempt.step_index, attempt.next_due_at = position, database_now(s)
    s.flush()
    record(s, actor=actor, action="attempt.extension", object_kind="attempt", object_id=attempt.id, data=told)
    engagement_facts.settle(s, engagement, actor)
    return attempt
