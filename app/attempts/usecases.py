"""What people do with attempts: start, cancel, retry, fill in a form, claim a rig cause; and what they see of them.

An attempt that is moved here is made due at once; the engine's tick finds it, whatever became of any message.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.attempts import access, forms, moves, repository
from app.attempts.causes import claim_cause
from app.attempts.conclude import conclude
from app.attempts.extend import extend
from app.attempts.layout import step_row, steps_for
from app.attempts.models import Attempt, Step
from app.attempts.views import attempt_view, events, newest_samples, samples, version
from app.audit.chain import last_actor, record
from app.engagements import cold_proof
from app.engagements import facts as engagement_facts
from app.engagements.access import find
from app.evidence import store
from app.kit.clock import now
from app.kit.db import database_now, new_id
from app.kit.errors import BadInput, FieldProblem, Refused
from app.kit.i18n import N_
from app.kit.words import in_words
from app.packing import repository as packing
from app.plans import repository as plans
from app.plans.reading import plan_of
from gates import time_needed
from gates.canonical import canonical_bytes, sha256_of
from gates.model import StepKind, Verdict
from gates.pipeline import may_retry, may_start
from gates.text import Text, seen
from gates.transitions import Event, RunStatus

__all__ = [
    "attempt_view",
    "cause_hash",
    "claim_cause",
    "claim_rig_cause",
    "conclude",
    "events",
    "extend",
    "newest_samples",
    "request_cancel",
    "retry",
    "samples",
    "start_attempt",
    "submit_form",
    "version",
]
SHORTEST_REASON, LONGEST_REASON = 2, 2000  # two characters are a word in Chinese


def start_attempt(s: Session, *, engagement_id: str, gate: str, rehearsal: bool = False, actor: Actor) -> Attempt:
    """Start an attempt or a rehearsal at a gate: its steps are laid out and it is due at once.

    Raises Refused with the rule's sentence when the pipeline does not allow it (gates.pipeline.may_start), when the attempt cannot end
    within the calendar (gates.time_needed), or when nothing could prove the cold array that the plan says (app.engagements.cold_proof).
    """
    require(actor, Permission.START_ATTEMPT)
    engagement = find(s, engagement_id, actor, lock=True)
    refusal = may_start(engagement_facts.gather(s, engagement), gate, rehearsal)
    if refusal:
        raise Refused(refusal.code, refusal.text)
    revision = plans.revisions(s, engagement_id)[-1]
    if not rehearsal and (late := time_needed.refusal(plan_of(revision), gate, engagement.g2_baseline, now())):
        raise Refused("does_not_fit", late)
    if not rehearsal and (unproven := cold_proof.refusal(plan_of(revision), gate, engagement.targets)):
        raise Refused("cold_unproven", unproven)
    tries = [a for a in repository.attempts_of(s, engagement_id) if a.gate == gate and a.rehearsal == rehearsal]
    number = 1 + max((a.number for a in tries), default=0)
    attempt = Attempt(
        id=new_id(),
        engagement_id=engagement_id,
        gate=gate,
        number=number,
        rehearsal=rehearsal,
        plan_id=revision.id,
        plan_hash=revision.hash,
        packing_number=packing.number_in_force(s, engagement_id),
        seed=seed_of(revision.hash, gate, number, rehearsal),
        status=str(RunStatus.QUEUED),
        generation=0,
        started_by=actor.user_id,
        created_at=now(),
        next_due_at=database_now(s),
    )
    s.add(attempt)
    s.flush()
    for position, spec in enumerate(steps_for(plan_of(revision), gate, rehearsal)):
        s.add(step_row(attempt.id, position, spec))
    moves.created(s, attempt, actor)
    engagement_facts.settle(s, engagement, actor)
    return attempt


def seed_of(plan_hash: str, gate: str, number: int, rehearsal: bool) -> int:
    """Return the seed of an attempt: known to both sides in advance, and another one for each attempt and rehearsal.

    48 bits, so that it survives JSON as an exact number; a rehearsal's prompts never meet those of an attempt.
    """
    text = f"{plan_hash}|{gate}|{number}|{'rehearsal' if rehearsal else 'attempt'}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def request_cancel(s: Session, *, attempt_id: str, reason: str, actor: Actor) -> Attempt:
    """Ask for a cancel; the engine ends what runs and says what it could not stop.

    Asking again with the same reason changes nothing. Raises Refused for another reason, which would be lost: it says who asked first, and why.
    """
    require(actor, Permission.CANCEL_ATTEMPT)
    attempt, _ = access.find_attempt(s, attempt_id, actor, lock=True)
    reason = reason_of(reason, "/reason")
    if attempt.status in (RunStatus.FINISHED, RunStatus.CANCELED) or attempt.verdict is not None:
        raise Refused("ended", N_("The attempt has ended or is judged already; there is nothing left to cancel."))
    if attempt.cancel_requested_at is None:
        attempt.cancel_requested_at, attempt.cancel_reason = now(), moves.kept_reason(reason)
        attempt.next_due_at, attempt.last_enqueued_at = database_now(s), None  # a hint that waits is of other work, in another queue maybe
        s.flush()
        record(s, actor=actor, action="attempt.request_cancel", object_kind="attempt", object_id=attempt.id, data={"reason": reason})
    elif attempt.cancel_reason != moves.kept_reason(reason):
        raise Refused(
            "cancel_asked_already",
            N_("The cancel was asked for already, by {name} (“{reason}”). Your reason was not recorded; nothing else changed."),
            name=last_actor(s, action="attempt.request_cancel", object_id=attempt.id),
            reason=moves.reason_pair(attempt.cancel_reason),
        )
    return attempt


def retry(s: Session, *, attempt_id: str, actor: Actor) -> Attempt:
    """Let an attempt in error go on from its failed step; all others keep what they brought, also those that a broken-off run passed over.

    Raises Refused for anything but an error: a verdict is never retried.
    """
    require(actor, Permission.RETRY_ATTEMPT)
    attempt, engagement = access.find_attempt(s, attempt_id, actor, lock=True)
    refusal = may_retry(engagement_facts.gather(s, engagement), attempt_id)
    if refusal:
        raise Refused(refusal.code, refusal.text)
    steps = repository.steps_of(s, attempt_id)
    failed = steps[attempt.step_index] if attempt.step_index < len(steps) else None
    moves.move(s, attempt, Event.RETRY, actor, reason=Text.parse(failed.title) if failed else "")
    if failed is not None:
        failed.status, failed.problem, failed.finished_at = "pending", None, None
    attempt.problem = attempt.finished_at = None
    attempt.cancel_requested_at, attempt.cancel_reason = None, ""
    attempt.next_due_at = database_now(s)
    s.flush()
    engagement_facts.settle(s, engagement, actor)
    return attempt


def submit_form(s: Session, *, step_id: str, form: dict[str, Any], photos: list[tuple[str, bytes]], actor: Actor) -> Step:
    """Take the form of a manual step with its photos as evidence, and let the attempt go on.

    Raises BadInput that names each field or file, Refused when the step does not wait for a person.
    """
    require(actor, Permission.SUBMIT_FORM)
    step, attempt, _ = access.find_step(s, step_id, actor, lock=True)
    if step.kind != StepKind.MANUAL or step.status != "waiting" or attempt.status != RunStatus.WAITING:
        raise Refused("not_waiting", N_("This step does not wait for a form: it is {status}."), status=in_words("step", step.status))
    if attempt.cancel_requested_at is not None:
        raise Refused("being_canceled", N_("The attempt is being canceled; the form was not taken."))
    params = step.spec.get("params") or {}
    entries = forms.read_form(forms.fields_of(params), form)
    least = int(params.get("photos_min") or 0)
    if not least <= len(photos) <= forms.MOST_FILES:
        field = FieldProblem("/photos", N_("Photos needed: from {least} to {most}; {count} came."), _counts(least, len(photos)))
        raise BadInput("bad_photos", N_("The photos cannot be accepted."), [field])
    kinds = [forms.check_file(name, data, f"/photos/{i}") for i, (name, data) in enumerate(photos)]
    names: list[str] = []
    for (name, data), kind in zip(photos, kinds, strict=True):
        names.append(forms.safe_name(name, kind, {*names, "form.json"}))
        _keep(s, attempt, step, names[-1], data, actor)
    at = now()
    document = {
        "schema": 1,
        "step": step.key,
        "form": entries,
        "photos": names,
        "entered_by": {"login": actor.login, "name": actor.name, "party": actor.party},
    }
    _keep(s, attempt, step, "form.json", canonical_bytes({**document, "entered_at": at.isoformat()}), actor)
    step.status, step.finished_at, step.problem = "done", at, None
    step.result = {"form": entries, "photos": names, "entered_by": actor.name}
    attempt.next_due_at = database_now(s)
    s.flush()
    record(s, actor=actor, action="step.form", object_kind="step", object_id=step.id, data={"attempt": attempt.id, "step": step.key, "photos": names})
    return step


def claim_rig_cause(s: Session, *, attempt_id: str, cause: str, actor: Actor) -> Attempt:
    """Claim that an attempt said nothing about the product because of the rig or the site. It counts until both parties approve.

    Another text is another claim: what was approved of the old one does not carry over. A cause that both have approved stands as it is.
    """
    require(actor, Permission.CLAIM_RIG_CAUSE)
    attempt, engagement = access.find_attempt(s, attempt_id, actor, lock=True)
    if attempt.rehearsal or not RunStatus(attempt.status).ended:
        raise Refused("not_ended", N_("A rig cause is claimed for an attempt that has ended; a rehearsal never counts."))
    if attempt.verdict in (Verdict.PASS, Verdict.CONDITIONAL, Verdict.FAIL):
        raise Refused(
            "product_judged",
            N_("The attempt judged the product ({verdict}); no rig cause takes it out of the count."),
            verdict=in_words("verdict", attempt.verdict),
        )
    if any(a.id == attempt_id and a.rig_cause.agreed for a in engagement_facts.gather(s, engagement).attempts):
        raise Refused("cause_stands", N_("Both parties have approved a rig cause of this attempt already; its text does not change any more."))
    attempt.rig_cause = reason_of(cause, "/cause")
    s.flush()
    record(s, actor=actor, action="attempt.claim_rig_cause", object_kind="attempt", object_id=attempt.id, data={"cause": attempt.rig_cause})
    return attempt


def cause_hash(attempt: Attempt) -> str:
    """Return the hash of a claimed rig cause: what the parties approve."""
    return sha256_of({"attempt": attempt.id, "rig_cause": attempt.rig_cause})


def _counts(least: int, count: int) -> dict[str, int]:
    return {"least": least, "most": forms.MOST_FILES, "count": count}


def reason_of(text: str, pointer: str) -> str:
    """Return a reason as it is kept. Raises BadInput when it says nothing or too much."""
    text = text.strip()
    if len(seen(text)) < SHORTEST_REASON or len(text) > LONGEST_REASON:
        field = FieldProblem(pointer, N_("A reason of {least} to {most} characters is needed."), {"least": SHORTEST_REASON, "most": LONGEST_REASON})
        raise BadInput("reason_needed", N_("Say why: the reason stands in the record."), [field])
    return text


def _keep(s: Session, attempt: Attempt, step: Step, name: str, data: bytes, actor: Actor) -> None:
    """Store a person's file as evidence of the site."""
    from app.evidence.usecases import register  # evidence asks attempts for their rows in turn

    stored = store.put_bytes(data)
    register(
        s, attempt_id=attempt.id, step_id=step.id, path=f"evidence/{step.key}/site/{name}", stored=stored, host="site", tool="person", actor=actor
    )
