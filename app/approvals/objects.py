"""What can be approved: for each kind the object, the hash to look at, and why it may not be decided now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from app.approvals import repository
from app.approvals.models import Approval
from app.attempts import causes
from app.attempts import repository as attempts
from app.attempts import revisions as judgements
from app.attempts.models import Attempt, AttemptCause, VerdictRevision
from app.attempts.revisions import InForce
from app.attempts.usecases import cause_hash
from app.attempts.views import newest_reports
from app.deviations import repository as deviations
from app.deviations import views as deviation_views
from app.deviations.models import Deviation
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.kit.clock import now, shown
from app.kit.i18n import N_, pair
from app.kit.words import in_words
from app.packing import repository as packing
from app.packing import views as packing_views
from app.packing.models import PackingRevision
from app.packing.rules import closed
from app.plans import repository as plans
from app.plans.models import PlanRevision
from app.plans.reading import plan_of
from app.reports.models import Report
from app.wipes import repository as wipes
from app.wipes import views as wipe_views
from app.wipes.models import WipeOrder
from gates.canonical import sha256_of
from gates.model import Verdict
from gates.pipeline import engagement_state
from gates.pipeline_facts import Decisions, Facts, State
from gates.text import Text
from gates.transitions import RunStatus

KINDS = ("plan", "conditional", "sign_off", "rig_cause", "soak_cause", "waiver", "stop_loss", "close", "wipe", "packing")


@dataclass(frozen=True)
class Item:
    """One object of approval. `refusal` says why nobody can decide on it now; `decided` is what was said about this hash.

    `scan_required`: whoever approves brings the scan of the printed, signed and stamped report.
    """

    kind: str
    id: str
    hash: str
    title: Text
    reason: Text
    gate: str | None = None
    attempt_id: str | None = None
    refusal: Text | None = None
    decided: Decisions = field(default_factory=Decisions)
    given: list[Approval] = field(default_factory=list)
    scan_required: bool = False

    def said_by(self, user_id: str) -> Approval | None:
        """Return the newest decision of a person on what is to be decided now, or None."""
        return next((g for g in reversed(self.given) if (g.user_id, g.object_hash) == (user_id, self.hash)), None)


@dataclass(frozen=True)
class _Rows:
    """The rows of one engagement, read once."""

    engagement: Engagement
    facts: Facts
    revisions: list[PlanRevision]
    attempts: list[Attempt]
    given: list[Approval]
    verdicts: dict[str, VerdictRevision]
    judged: dict[str, InForce]
    reports: dict[str, dict[str, Report]]
    deviations: list[Deviation]
    causes: list[AttemptCause]
    wipes: list[WipeOrder]
    packing: list[PackingRevision]


def items(s: Session, engagement: Engagement) -> list[Item]:
    """Return everything of an engagement that can be, or could have been, decided."""
    tries = attempts.attempts_of(s, engagement.id)
    revisions = plans.revisions(s, engagement.id)
    given = repository.approvals_of(s, engagement.id)
    ids = [a.id for a in tries]
    judged = judgements.in_force(s, ids)
    rows = _Rows(
        engagement,
        engagement_facts.facts_of(engagement, revisions, tries, given, judged),
        revisions,
        tries,
        given,
        attempts.latest_verdicts(s, ids),
        judged,
        newest_reports(s, ids),
        deviations.deviations_of(s, engagement.id),
        causes.newest_of(s, ids),
        wipes.orders_of(s, engagement.id),
        packing.revisions_of(s, engagement.id),
    )
    of_attempts = (item for a in tries if not a.rehearsal for item in _of_attempt(rows, a))
    of_register = (_waiver(rows, d) for d in rows.deviations if d.kind == "waiver")
    return [*_plans(rows), *of_attempts, *of_register, *(_wipe(rows, w) for w in rows.wipes), *_packing(rows), _close(rows)]


def _plans(rows: _Rows) -> Iterator[Item]:
    for revision in rows.revisions:
        refusal = None
        if revision.sealed_at:
            refusal = pair(N_("Revision {number} of the plan is sealed already."), number=revision.revision)
        elif revision is not rows.revisions[-1]:
            refusal = pair(N_("Revision {number} of the plan was replaced by a newer one."), number=revision.revision)
        elif rows.facts.closed:
            refusal = engagement_state(rows.facts)[1]
        title = pair(N_("Plan, revision {number}"), number=revision.revision)
        reason = pair(N_("Both parties approve the hash of the plan; then it is sealed."))
        yield _item(rows, "plan", revision.id, revision.hash, title, reason, refusal=refusal)


def _of_attempt(rows: _Rows, a: Attempt) -> Iterator[Item]:
    verdict, words = rows.verdicts.get(a.id), {"gate": a.gate, "number": a.number}
    if a.verdict == Verdict.CONDITIONAL and verdict:
        title = pair(N_("Conditional: {gate}, attempt {number}"), **words)
        reason = pair(
            N_("The verdict is conditional ({because}); it goes on only when both parties consent."), because=in_words("because", *(a.because or []))
        )
        yield _item(rows, "conditional", a.id, verdict.hash, title, reason, a, _begun_again(rows, a))
    if a.verdict and verdict:
        yield _sign_off(rows, a, verdict)
    fact = next(fact for fact in rows.facts.attempts if fact.id == a.id)
    if (fact.failed or a.verdict == Verdict.FAIL) and verdict and fact.on_fail == "stop":
        yield _stop_loss(rows, a, verdict)
    if a.rig_cause and a.verdict not in (Verdict.PASS, Verdict.CONDITIONAL, Verdict.FAIL):
        title = pair(N_("Rig cause: {gate}, attempt {number}"), **words)
        reason = pair(N_("Claimed: “{cause}”. When both parties approve, the attempt does not count."), cause=a.rig_cause)
        yield _item(rows, "rig_cause", a.id, cause_hash(a), title, reason, a)
    yield from (_soak_cause(rows, a, c) for c in rows.causes if c.attempt_id == a.id)


def _begun_again(rows: _Rows, a: Attempt) -> Text | None:
    """Return why a conditional is decided for good: after its rejection another attempt was begun, and nobody chooses between two results."""
    later = [b.number for b in rows.attempts if b.gate == a.gate and not b.rehearsal and b.number > a.number]
    if not later:
        return None
    return pair(N_("This conditional was rejected, and attempt {number} was begun on that: it decides now."), number=max(later))


def _soak_cause(rows: _Rows, a: Attempt, c: AttemptCause) -> Item:
    """Return the cause of one event of a soak; agreed, the soak clock restarts there and the attempt is judged again."""
    title = pair(N_("Cause of an event: {gate}, attempt {number}"), gate=a.gate, number=a.number)
    reason = pair(
        N_("{what}. Cause claimed by {person}: “{cause}”. When both parties approve, the soak clock restarts there and the attempt is judged again."),
        what=Text.parse(c.what),
        person=c.person,
        cause=c.text,
    )
    return _item(rows, "soak_cause", c.id, causes.digest(c), title, reason, a)


def _sign_off(rows: _Rows, a: Attempt, verdict: VerdictRevision) -> Item:
    """Return the sign-off of a report, which must exist and carry the manifest of the newest judgement."""
    reports = rows.reports.get(a.id, {}).values()
    refusal = None
    if a.status != RunStatus.FINISHED or not reports:
        refusal = pair(N_("There is no report to sign yet: the attempt is not finished."))
    elif not any(report.manifest_hash == verdict.manifest_hash for report in reports):
        refusal = pair(N_("The report was printed before the newest judgement; it is printed again before anybody signs."))
    title = pair(N_("Report: {gate}, attempt {number}"), gate=a.gate, number=a.number)
    required = rows.facts.policy.sign_off[a.gate] == "required"
    reason = pair(
        N_("Print the report, let it be signed and stamped, and upload the scan; it is linked by its hash.")
        if required
        else N_("Approve the report. The plan asks for no scan at this gate; upload one, if there is one, and it is linked by its hash.")
    )
    item = _item(rows, "sign_off", a.id, verdict.manifest_hash, title, reason, a, refusal)
    return replace(item, scan_required=required)


def _stop_loss(rows: _Rows, a: Attempt, verdict: VerdictRevision) -> Item:
    """Return the lifting of a stop, which is open to objection for the plan's days and then final."""
    until = objection_until(rows.revisions, a, rows.judged[a.id].since)
    title = pair(N_("Lift the stop-loss: {gate}, attempt {number}"), gate=a.gate, number=a.number)
    reason = pair(N_("Open to objection until {until}. The fail stays in every report."), until=shown(until, seconds=False) or "-")
    refusal = None
    if until and now() > until:
        refusal = pair(N_("The days of objection ended at {until}; the stop is final."), until=shown(until, seconds=False))
    return _item(rows, "stop_loss", a.id, verdict.hash, title, reason, a, refusal)


def _waiver(rows: _Rows, d: Deviation) -> Item:
    """Return a waiver: both parties accept a thing as it is. No verdict and no gate changes by it."""
    label, gate = deviation_views.label(d), d.gate
    title = pair(N_("Waiver {label}, {gate}"), label=label, gate=gate)
    reason = pair(
        N_("“{what}”. Reason: “{reason}”. Owner: {owner}, due {due}. A waiver changes no verdict and counts as a pass nowhere."),
        what=d.what,
        reason=d.reason,
        owner=d.owner,
        due=d.due.isoformat(),
    )
    refusal = pair(N_("{label} was closed already, by {name}."), label=label, name=d.closed_by) if d.closed_at else None
    return replace(_item(rows, "waiver", d.id, deviation_views.digest(d), title, reason, refusal=refusal), gate=gate)


def _wipe(rows: _Rows, w: WipeOrder) -> Item:
    """Return a wipe of drives. The hash names way and serial numbers; without both parties' approval of it the wiping play cannot start."""
    label, refusal = wipe_views.label(w), None
    if w.started_at:
        refusal = pair(N_("{label} was begun already; what is wiped cannot be brought back."), label=label)
    elif w.withdrawn_at:
        refusal = pair(N_("{label} was withdrawn, by {name}."), label=label, name=w.withdrawn_by)
    elif wipe_views.state_of(w, rows.given) == wipe_views.REJECTED:
        refusal = pair(N_("{label} was rejected, and that ends it: order the wipe anew."), label=label)
    reason = pair(
        N_(
            "{way}, on {hosts}: {serials}. Ordered by {person}: “{reason}”. All data on these drives is destroyed for good. "
            "It is begun only when both approve."
        ),
        way=in_words("wipe_way", w.way),
        hosts=", ".join(wipe_views.hosts_of(w)),
        serials=", ".join(wipe_views.serials_of(w)),
        person=w.ordered_by,
        reason=w.reason,
    )
    title = pair(N_("Wipe {label}, drives: {count}"), label=label, count=len(w.drives))
    return _item(rows, "wipe", w.id, wipe_views.digest(w), title, reason, refusal=refusal)


def _packing(rows: _Rows) -> Iterator[Item]:
    """Return the proposed packing lists. The hash covers every entry; agreed, one is in force for each attempt that begins from then on."""
    for p in rows.packing:
        refusal = closed(rows.facts)
        if p is not rows.packing[-1]:
            refusal = pair(N_("Revision {number} of the packing list was replaced by a newer proposal."), number=p.number)
        told = packing_views.changes(rows.engagement.packing_list, p.packing_list)
        reason = pair(
            N_("Proposed by {person}: “{reason}”. Entries removed: {removed}, added: {added}. Attempts that were begun keep their list."),
            person=p.proposed_by,
            reason=p.reason,
            removed=len(told["removed"]),
            added=len(told["added"]),
        )
        title = pair(N_("Packing list, revision {number}"), number=p.number)
        yield _item(rows, "packing", p.id, packing_views.digest(p), title, reason, refusal=refusal)


def _close(rows: _Rows) -> Item:
    engagement, (state, why) = rows.engagement, engagement_state(rows.facts)
    refusal = None
    if state not in (State.NOT_CONCLUDED, State.STOPPED):
        refusal = pair(
            N_("Only an engagement that is stopped or not concluded is closed by approval; this one is {state}."), state=in_words("engagement", state)
        )
    digest = sha256_of({"engagement": engagement.id, "state": str(state), "reason": why.json()})
    return _item(rows, "close", engagement.id, digest, pair(N_("Close the engagement")), why, refusal=refusal)


def objection_until(revisions: list[PlanRevision], a: Attempt, judged: datetime | None) -> datetime | None:
    """Return when the days of objection against a fail end; None while the attempt goes on. A fail that was only found when it was judged
    anew can be objected to from that judgement on.
    """  # noqa: D205
    if a.finished_at is None:
        return None
    plan = next(plan_of(revision) for revision in revisions if revision.id == a.plan_id)
    return max(a.finished_at, judged or a.finished_at) + timedelta(days=plan.policy.objection_days)


def _item(
    rows: _Rows, kind: str, object_id: str, digest: str, title: Text, reason: Text, a: Attempt | None = None, refusal: Text | None = None
) -> Item:
    given = [g for g in rows.given if (g.object_kind, g.object_id) == (kind, object_id)]
    standing = rows.judged.get(object_id, InForce())
    hashes = {"conditional": standing.verdict_hashes, "stop_loss": standing.lift_hashes, "sign_off": standing.manifest_hashes}.get(kind)
    decided = engagement_facts.decisions(given, kind, object_id, hashes or {digest})
    if engagement_facts.decisions(given, kind, object_id, hashes).agreed:
        refusal = refusal or pair(N_("Both parties have agreed already."))
    return Item(kind, object_id, digest, title, reason, a.gate if a else None, a.id if a else None, refusal, decided, given)
