"""What web, API and CLI show of an attempt, made once: no face computes a number of its own (docs/architecture.md)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor, require
from app.accounts.repository import user
from app.accounts.roles import Permission
from app.attempts import access, causes, repository, sealing
from app.attempts.forms import fields_of
from app.attempts.models import Attempt, Sample, Step, StepEvent, VerdictRevision
from app.attempts.moves import shown_reason
from app.attempts.revisions import changes
from app.engagements import facts as engagement_facts
from app.engagements.models import Engagement
from app.kit.clock import stamp
from app.packing import repository as packing
from app.reports.models import Report
from gates.model import StepKind
from gates.pipeline import engagement_state, may_extend, may_retry
from gates.pipeline_facts import Facts
from gates.transitions import RunStatus

MOST_ROWS = 5000
# What may be seen of a sample while figures are sealed: that it happened and whether it is valid, never how fast it was.
SEALED_KEYS = ("seq", "phase", "tier", "prompt", "finish_reason", "http_status", "kind")


def attempt_view(s: Session, *, attempt_id: str, actor: Actor) -> dict[str, Any]:
    """Return everything a page shows of one attempt."""
    require(actor, Permission.VIEW)
    attempt, engagement = access.find_attempt(s, attempt_id, actor)
    facts = engagement_facts.gather(s, engagement)
    steps = repository.steps_of(s, attempt_id)
    verdicts = repository.verdicts_of(s, attempt_id)
    event_count, sample_count = repository.counts(s, attempt_id)
    starter = user(s, attempt.started_by)
    newest = verdicts[-1] if verdicts else None
    sealed = sealing.sealed_from(s, attempt, engagement, facts)
    known = next(a for a in facts.attempts if a.id == attempt.id)
    return {
        "id": attempt.id,
        "engagement": _engagement(engagement, facts),
        "gate": attempt.gate,
        "title": gate_title(attempt.gate),
        "number": attempt.number,
        "rehearsal": attempt.rehearsal,
        "simulated": bool(engagement.targets["simulated"]),
        "status": attempt.status,
        "verdict": attempt.verdict,
        "because": attempt.because or [],
        "problem": attempt.problem,
        "cancel_requested_at": stamp(attempt.cancel_requested_at),
        "cancel_reason": shown_reason(attempt.cancel_reason),
        "rig_cause": attempt.rig_cause,
        "plan_hash": attempt.plan_hash,
        "seed": attempt.seed,
        "counted": known.uses_up,
        "excused": known.excused,
        "created_at": stamp(attempt.created_at),
        "started_at": stamp(attempt.started_at),
        "finished_at": stamp(attempt.finished_at),
        "started_by": starter.name if starter else "Quadgate",
        "node": attempt.node,
        "order": engagement.order,
        "packing_list": packing.list_of(s, engagement, attempt.packing_number),  # that it began under
        "steps": [_step(step, sealed) for step in steps],
        "transitions": [
            {"from": t.from_status, "event": t.event, "to": t.to_status, "actor": t.actor, "reason": shown_reason(t.reason), "at": stamp(t.at)}
            for t in repository.transitions_of(s, attempt_id)
        ],
        "may": _may(attempt, facts, steps, actor),
        "sealed_figures": sealed is not None,
        "document": newest.document if newest else None,  # while an extension runs: the verdict before it
        "extension": _extension(attempt),
        "verdict_hash": newest.hash if newest else None,
        "manifest_hash": newest.manifest_hash if newest else None,
        "revisions": _revisions(verdicts),
        "causes": causes.causes_view(s, attempt_id, newest.document) if newest else [],
        "reports": [
            {"id": r.id, "language": r.language, "revision": r.revision, "number": r.number, "sha256": r.sha256, "size": r.size}
            for r in newest_reports(s, [attempt_id]).get(attempt_id, {}).values()
        ],
        "events": event_count,
        "samples": sample_count,
    }


def version(s: Session, *, attempt_id: str, actor: Actor) -> tuple[object, ...]:
    """Return what differs once `attempt_view`, `events` or `samples` would tell anything new: a stream asks for it before it reads them again."""
    require(actor, Permission.VIEW)
    attempt, _ = access.find_attempt(s, attempt_id, actor)
    moved = (attempt.generation, attempt.status, attempt.verdict, attempt.next_due_at, attempt.cancel_requested_at, attempt.rig_cause)
    return (*moved, *repository.newest_ids(s, attempt_id))


def events(s: Session, *, attempt_id: str, after: int, limit: int, actor: Actor) -> list[dict[str, Any]]:
    """Return the events of Ansible with an id above `after`, at most `limit`, in order."""
    require(actor, Permission.VIEW)
    hidden = _sealed_steps(s, *access.find_attempt(s, attempt_id, actor))
    return [_event(e, e.step_id in hidden) for e in repository.events_after(s, attempt_id, after, _limit(limit))]


def samples(s: Session, *, attempt_id: str, after: int, limit: int, actor: Actor) -> list[dict[str, Any]]:
    """Return the samples with an id above `after`, at most `limit`, in order; without measured values while they are sealed."""
    require(actor, Permission.VIEW)
    hidden = _sealed_steps(s, *access.find_attempt(s, attempt_id, actor))
    return [_sample(row, row.step_id in hidden) for row in repository.samples_after(s, attempt_id, after, _limit(limit))]


def newest_samples(s: Session, *, attempt_id: str, actor: Actor) -> dict[str, Any]:
    """Return where the samples end: {last: the largest id or 0, record: the newest one of a request or null}. A page that shows it begins there."""
    require(actor, Permission.VIEW)
    hidden = _sealed_steps(s, *access.find_attempt(s, attempt_id, actor))
    last, record = repository.newest_sample(s, attempt_id), repository.newest_sample(s, attempt_id, "records")
    return {"last": last.id if last else 0, "record": _sample(record, record.step_id in hidden) if record else None}


def gate_title(gate: str) -> dict[str, str]:
    """Return a gate's title in both languages."""
    from gates.registry import GATES  # the gates bring numpy and scipy: only who shows one pays for them

    return GATES[gate].title.json()


def newest_reports(s: Session, attempt_ids: list[str]) -> dict[str, dict[str, Report]]:
    """Return the newest report of each attempt and language."""
    rows = s.execute(select(Report).where(Report.attempt_id.in_(attempt_ids)).order_by(Report.revision)).scalars()
    found: dict[str, dict[str, Report]] = {}
    for row in rows:
        found.setdefault(row.attempt_id, {})[row.language] = row
    return found


def _limit(limit: int) -> int:
    return max(1, min(limit, MOST_ROWS))


def _engagement(e: Engagement, facts: Facts) -> dict[str, Any]:
    state, why = engagement_state(facts)
    return {
        "id": e.id,
        "code": e.code,
        "customer": e.customer,
        "vendor": e.vendor,
        "site": e.site,
        "state": str(state),
        "state_reason": why.json(),
    }


def _sealed_steps(s: Session, attempt: Attempt, engagement: Engagement) -> set[str]:
    """Return the ids of the steps whose figures are sealed."""
    first = sealing.sealed_from(s, attempt, engagement)
    return {step.id for step in repository.steps_of(s, attempt.id) if sealing.sealed(step, first)} if first is not None else set()


def _extension(attempt: Attempt) -> dict[str, Any] | None:
    """Return how the attempt was extended: {pairs, at, by, party, said, why, from_verdict, judged: hash of the verdict after it | null}."""
    told = attempt.extension
    return {key: told[key] for key in ("pairs", "at", "by", "party", "said", "why", "from_verdict", "judged")} if told else None


def _step(step: Step, first_sealed: int | None) -> dict[str, Any]:
    timed, foretold = sealing.timed(step, first_sealed), sealing.foretold(step, first_sealed)
    return {
        "id": step.id,
        "position": step.position,
        "key": step.key,
        "kind": step.kind,
        "title": step.title,
        "status": step.status,
        "try_no": step.try_no,
        "problem": step.problem,
        "params": _params(step),
        "halted": ((step.result or {}).get("halt") or {}).get("hosts") or {},
        "started_at": stamp(step.started_at) if timed else None,
        "finished_at": stamp(step.finished_at) if timed else None,
        "expected_end_at": stamp(step.expected_end_at) if foretold else None,
        "last_seen_at": stamp(step.last_seen_at) if foretold else None,
    }


def _params(step: Step) -> dict[str, Any]:
    """Return a step's parameters; every field of a form gets its title."""
    params = step.spec.get("params") or {}
    return {**params, "form": fields_of(params)} if step.kind == StepKind.MANUAL else params


def _may(attempt: Attempt, facts: Facts, steps: list[Step], actor: Actor) -> dict[str, bool]:
    """Return what this person can do with this attempt now."""
    status = RunStatus(attempt.status)
    over = status in (RunStatus.FINISHED, RunStatus.CANCELED) or attempt.verdict is not None
    waits = status is RunStatus.WAITING and any(step.status == "waiting" for step in steps)
    retriable = status is RunStatus.ERROR and may_retry(facts, attempt.id) is None
    return {
        "cancel": not over and attempt.cancel_requested_at is None and actor.may(Permission.CANCEL_ATTEMPT),
        "retry": retriable and actor.may(Permission.RETRY_ATTEMPT),
        "extend": may_extend(facts, attempt.id) is None and actor.may(Permission.START_ATTEMPT),
        "judge": status.ended and attempt.verdict is not None and not attempt.rehearsal and actor.may(Permission.JUDGE),
        "claim_cause": attempt.verdict is not None and actor.may(Permission.CLAIM_RIG_CAUSE),
        "form": waits and attempt.cancel_requested_at is None and actor.may(Permission.SUBMIT_FORM),
    }


def _revisions(verdicts: list[VerdictRevision]) -> list[dict[str, Any]]:
    """Return every judgement with the checks that it changed against the one before."""
    shown: list[dict[str, Any]] = []
    before: dict[str, Any] | None = None
    for row in verdicts:
        shown.append(
            {
                "revision": row.revision,
                "verdict": row.verdict,
                "hash": row.hash,
                "judge_version": row.judge_version,
                "rules_hash": row.rules_hash,
                "plan_hash": row.plan_hash,
                "manifest_hash": row.manifest_hash,
                "by": row.judged_by,
                "why": shown_reason(row.why),
                "at": stamp(row.at),
                "changed": changes(before, row.document) if before is not None else [],
            }
        )
        before = row.document
    return shown


def _event(e: StepEvent, sealed: bool) -> dict[str, Any]:
    # The task `reply` carries the journal that a poll fetched.
    hidden = sealed and ("reply" in e.task or ".jsonl" in e.stdout)
    return {
        "id": e.id,
        "step_id": e.step_id,
        "run": e.run,
        "counter": e.counter,
        "kind": e.kind,
        "host": e.host,
        "task": e.task,
        "stdout": "" if hidden else e.stdout,
        "at": None if sealed else stamp(e.at),  # from the last one of a start to the first one of a collect a run takes its time
    }


def _sample(row: Sample, sealed: bool) -> dict[str, Any]:
    data = row.data
    if sealed:
        error = row.data.get("error")
        data = {key: row.data[key] for key in SEALED_KEYS if key in row.data}
        data["error"] = {"kind": error.get("kind")} if isinstance(error, dict) else None
    return {"id": row.id, "step_id": row.step_id, "stream": row.stream, "seq": row.seq, "data": data}
