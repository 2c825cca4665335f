"""Every query about attempts, steps, events, samples and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Sample, Step, StepEvent, Transition, VerdictRevision

MANY_SAMPLES = 20_000  # up to which all are looked through


def attempt(s: Session, attempt_id: str) -> Attempt | None:
    """Return an attempt by id."""
    return s.get(Attempt, attempt_id)


def attempts_of(s: Session, engagement_id: str) -> list[Attempt]:
    """Return all attempts and rehearsals of an engagement in the order in which they were started."""
    query = select(Attempt).where(Attempt.engagement_id == engagement_id).order_by(Attempt.created_at, Attempt.id)
    return list(s.execute(query).scalars())


def steps_of(s: Session, attempt_id: str) -> list[Step]:
    """Return an attempt's steps in order."""
    return list(s.execute(select(Step).where(Step.attempt_id == attempt_id).order_by(Step.position)).scalars())


def step(s: Session, step_id: str) -> Step | None:
    """Return a step by id."""
    return s.get(Step, step_id)


def transitions_of(s: Session, attempt_id: str) -> list[Transition]:
    """Return an attempt's transitions in order."""
    return list(s.execute(select(Transition).where(Transition.attempt_id == attempt_id).order_by(Transition.generation)).scalars())


def events_after(s: Session, attempt_id: str, after: int, limit: int) -> list[StepEvent]:
    """Return events with a larger id, in order."""
    query = select(StepEvent).where(StepEvent.attempt_id == attempt_id, StepEvent.id > after).order_by(StepEvent.id).limit(limit)
    return list(s.execute(query).scalars())


def samples_after(s: Session, attempt_id: str, after: int, limit: int) -> list[Sample]:
    """Return samples with a larger id, in order."""
    query = select(Sample).where(Sample.attempt_id == attempt_id, Sample.id > after).order_by(Sample.id).limit(limit)
    return list(s.execute(query).scalars())


def newest_sample(s: Session, attempt_id: str, stream: str = "") -> Sample | None:
    """Return an attempt's sample with the largest id, of all streams or of those whose name begins so; None when there is none."""
    query = select(Sample).where(Sample.attempt_id == attempt_id, Sample.stream.startswith(stream)).order_by(Sample.id.desc()).limit(1)
    return s.execute(query).scalars().first()


def counts(s: Session, attempt_id: str) -> tuple[int, int]:
    """Return how many events an attempt has, and how many lines its journals had so far, by the ends of their numbering, which has no gap."""
    events = s.execute(select(func.count()).select_from(StepEvent).where(StepEvent.attempt_id == attempt_id)).scalar_one()
    mine = Sample.attempt_id == attempt_id
    some = select(Sample.id).where(mine).limit(MANY_SAMPLES + 1).subquery()
    if s.execute(select(func.count()).select_from(some)).scalar_one() > MANY_SAMPLES:
        ends = list(_ends(s, attempt_id))
    else:
        of_each = select(func.min(Sample.seq), func.max(Sample.seq)).where(mine).group_by(Sample.step_id, Sample.stream)
        ends = [(first, last) for first, last in s.execute(of_each)]
    return events, sum(last - first + 1 for first, last in ends)


def _ends(s: Session, attempt_id: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each journal by looking each up in the index, however many rows lie between."""
    for step_id in s.execute(select(Step.id).where(Step.attempt_id == attempt_id)).scalars():
        mine = Sample.step_id == step_id
        stream = s.execute(select(func.min(Sample.stream)).where(mine)).scalar_one()
        while stream is not None:
            first, last = (s.execute(select(end(Sample.seq)).where(mine, Sample.stream == stream)).scalar_one() for end in (func.min, func.max))
            yield first, last
            stream = s.execute(select(func.min(Sample.stream)).where(mine, Sample.stream > stream)).scalar_one()


def newest_ids(s: Session, attempt_id: str) -> tuple[int | None, int | None]:
    """Return the largest id of an attempt's events and of its samples."""
    events = select(func.max(StepEvent.id)).where(StepEvent.attempt_id == attempt_id).scalar_subquery()
    samples = select(func.max(Sample.id)).where(Sample.attempt_id == attempt_id).scalar_subquery()
    return tuple(s.execute(select(events, samples)).one())


def verdicts_of(s: Session, attempt_id: str) -> list[VerdictRevision]:
    """Return an attempt's judgements, the newest last."""
    query = select(VerdictRevision).where(VerdictRevision.attempt_id == attempt_id).order_by(VerdictRevision.revision)
    return list(s.execute(query).scalars())


def latest_verdicts(s: Session, attempt_ids: Iterable[str]) -> dict[str, VerdictRevision]:
    """Return the newest judgement of each attempt that has one."""
    query = select(VerdictRevision).where(VerdictRevision.attempt_id.in_(list(attempt_ids))).order_by(VerdictRevision.revision)
    return {row.attempt_id: row for row in s.execute(query).scalars()}
