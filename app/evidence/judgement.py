"""Judging stored evidence without holding a transaction: what it rests on is read and hashed in one, the judgement is kept in another.

Between the two nobody waits: hashing a soak's evidence and judging it takes as long as it takes. What was prepared names its inputs and its
manifest by hash; when they are others by the time the judgement is kept, it is thrown away and made anew.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.roles import Permission
from app.attempts import repository as attempts
from app.attempts import revisions as judgements
from app.attempts.access import find_attempt
from app.attempts.models import Attempt, VerdictRevision
from app.attempts.moves import audited_reason, kept_reason
from app.attempts.sealing import sealed_from
from app.audit.chain import record
from app.evidence import store
from app.evidence.usecases import enter, inputs, opened, present_manifest
from app.kit import traces
from app.kit.db import Transactions
from app.kit.errors import QuadgateError, Refused
from app.kit.i18n import N_
from gates.bundle import INPUTS, Unreadable
from gates.canonical import canonical_bytes, sha256_of
from gates.g3.extension import FIRST_VERDICT
from gates.text import Text
from gates.transitions import RunStatus

TRIES = 3


class Outdated(Exception):  # noqa: N818 - no error: it is worked out again
    """What a judgement or a report rests on changed while it was worked out."""


@dataclass(frozen=True)
class Prepared:
    """What one judgement rests on."""

    attempt_id: str
    manifest: dict[str, Any]
    manifest_hash: str
    inputs_hash: str
    g2_baseline: str


def prepare(s: Session, *, attempt_id: str, actor: Actor) -> Prepared:
    """Enter what the judge is told into the evidence, and return what is to be judged. Judges nothing.

    Raises Refused for a rehearsal, and for a person while the attempt is going on.
    """
    attempt = _open_to_judgement(s, attempt_id, actor)
    if attempt.extension:
        enter(s, attempt, None, FIRST_VERDICT, store.put_bytes(_extended_verdict(s, attempt)), actor, tool="quadgate")
    told = inputs(s, attempt_id)
    enter(s, attempt, None, INPUTS, store.put_bytes(canonical_bytes(told)), actor, tool="quadgate")
    made = present_manifest(s, attempt_id)
    baseline = str((told["g2_baseline"] or {}).get("hash") or "")
    return Prepared(attempt_id, made, sha256_of(made), sha256_of(told), baseline)


def judged(made: Prepared) -> dict[str, Any]:
    """Return the verdict of what was prepared, from plan and evidence alone. Takes long, and needs no database.

    The manifest goes into the store under its own hash, so that the bundle of this judgement can be made again at any time.
    Raises QuadgateError when stored evidence is no longer what the manifest says.
    """
    from gates.judge import judge

    store.put_bytes(canonical_bytes(made.manifest))
    try:
        with traces.span("judge", attempt=made.attempt_id) as span:
            document = judge(opened(made.manifest))
            span.say(gate=str(document["gate"]), verdict=str(document["verdict"]))
    except Unreadable as error:
        raise QuadgateError("evidence_unreadable", error.text) from error
    plain: dict[str, Any] = json.loads(canonical_bytes(document))
    return plain


def keep(s: Session, made: Prepared, document: dict[str, Any], *, actor: Actor, why: str | Text = "") -> VerdictRevision:
    """Keep a judgement as a new revision; none is ever replaced. Raises Outdated when it rests on something else than what there is now."""
    attempt_id = made.attempt_id
    _open_to_judgement(s, attempt_id, actor)
    if (sha256_of(inputs(s, attempt_id)), sha256_of(present_manifest(s, attempt_id))) != (made.inputs_hash, made.manifest_hash):
        raise Outdated(f"attempt {attempt_id}: what it is judged by changed while it was judged")
    rests_on = {"manifest_hash": made.manifest_hash, "g2_baseline": made.g2_baseline}
    revision = judgements.add(s, attempt_id=attempt_id, document=document, actor=actor, why=kept_reason(why), **rests_on)
    data = {"revision": revision.revision, "why": audited_reason(why), "verdict": revision.verdict, "hash": revision.hash}
    data["manifest_hash"] = revision.manifest_hash
    record(s, actor=actor, action="attempt.judge", object_kind="attempt", object_id=attempt_id, data={**data, "plan_hash": revision.plan_hash})
    return revision


def judge_attempt(begin: Transactions, *, attempt_id: str, actor: Actor, why: str | Text = "") -> VerdictRevision:
    """Prepare, judge outside any transaction, and keep; anew when what it rests on changed meanwhile.

    It stores a judgement and follows none: app/attempts/judging.py and the engine's step do. Raises what the three raise.
    """
    for _ in range(TRIES):
        with begin() as s:
            made = prepare(s, attempt_id=attempt_id, actor=actor)
        document = judged(made)
        try:
            with begin() as s:
                return keep(s, made, document, actor=actor, why=why)
        except Outdated:
            continue
    raise changing()


def changing() -> Refused:
    """Return the refusal of a work whose ground moved each time it was done."""
    return Refused("changing", N_("What this rests on changed each time while it was worked out. Nothing was recorded; try again in a moment."))


def _open_to_judgement(s: Session, attempt_id: str, actor: Actor) -> Attempt:
    require(actor, Permission.JUDGE)
    attempt, engagement = find_attempt(s, attempt_id, actor)
    if attempt.rehearsal:
        raise Refused("rehearsal", N_("A rehearsal is never judged."))
    if actor.via != "engine" and (not RunStatus(attempt.status).ended or sealed_from(s, attempt, engagement) is not None):
        raise Refused("not_ended", N_("The attempt is still going on; it is judged by its own step, and may be judged again when it has ended."))
    return attempt


def _extended_verdict(s: Session, attempt: Attempt) -> bytes:
    """Return the verdict that an extension goes on from, as judged then: it travels in the bundle."""
    wanted = (attempt.extension or {})["from_verdict"]
    return canonical_bytes(next(v.document for v in attempts.verdicts_of(s, attempt.id) if v.hash == wanted))
