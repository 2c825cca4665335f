"""Which due work is hinted next: the oldest of each engagement in turn, and no more than a queue can hold without those behind it waiting long.

What is not hinted stays due and is found by the next tick. So a queue never grows with the work there is, a hint that waits in it is not sent
again, and an engagement with hundreds of due attempts is one among others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, case, func, not_, null, or_, select, update
from sqlalchemy.orm import Session

from app.attempts.models import Attempt, Step
from app.engine import hints, sight
from app.engine.claim import canceled, movable, unheld
from app.engine.models import Node
from app.engine.nodes import stale
from app.engine.policy import CANCEL_STALE_S, HINT_AGAIN_S, HINT_LOST_S, QUEUED_MAX
from app.engine.steps import halt
from app.kit.db import database_now
from app.settings import settings

LOOK_MAX = 1000  # rows of one look; the next tick is a second away
_BATCH = 500
_AT = and_(Step.attempt_id == Attempt.id, Step.position == Attempt.step_index)


@dataclass(frozen=True)
class Due:
    """An attempt to be hinted: where, for what kind of step (see `_kind`), and when it was hinted last."""

    attempt_id: str
    generation: int
    node: str
    kind: str | None
    sent_at: datetime | None

    @property
    def queue(self) -> str:
        """Return the queue in which it waits for its turn."""
        return hints.queue_of(self.node, self.kind)


@dataclass(frozen=True)
class Seen:
    """What one look found: whom to hint, in the order of their turn, and how many hints wait in each queue as far as the rows tell."""

    now: datetime
    rows: list[Due]
    out: Counter[str]
    stranded: list[str] = field(default_factory=list)  # attempts that nobody may go on with, and that do not say so yet

    def doubted(self) -> set[str]:
        """Return the queues whose hints should have been taken by now: the broker is asked whether it still has them."""
        return {row.queue for row in self.rows if row.sent_at is not None and not self._over(row)}

    def chosen(self, depths: Mapping[str, int]) -> list[Due]:
        """Return whom to hint now. `depths`: what waits in the doubted queues; one that is empty has lost what it was sent."""
        out, rows = Counter(self.out), []
        for queue in self.doubted():
            if depths.get(queue) == 0:
                out[queue] = 0
        for row in self.rows:
            fresh = row.sent_at is None or self._over(row) or depths.get(row.queue) == 0
            if fresh and out[row.queue] < QUEUED_MAX:
                out[row.queue] += 1
                rows.append(row)
        return rows

    def _over(self, row: Due) -> bool:
        return row.sent_at is not None and abs((self.now - row.sent_at).total_seconds()) > HINT_AGAIN_S  # either way: clocks are set back too


def anything(s: Session) -> bool:
    """Tell whether there is anybody to hint."""
    return s.scalar(select(Attempt.id).where(*_hintable(database_now(s))).limit(1)) is not None


def look(s: Session) -> Seen:
    """Look at what is due and was not hinted, or so long ago that its hint may be lost."""
    now = database_now(s)
    places = _Places(s, now)
    recent = and_(
        Attempt.last_enqueued_at >= now - timedelta(seconds=HINT_AGAIN_S), Attempt.last_enqueued_at <= now + timedelta(seconds=HINT_AGAIN_S)
    )
    hinted = select(Attempt.node, _kind().label("kind")).select_from(Attempt).outerjoin(Step, _AT).where(*_due(now), recent).subquery()
    out: Counter[str] = Counter()
    for node, kind, count in s.execute(select(hinted.c.node, hinted.c.kind, func.count()).group_by(hinted.c.node, hinted.c.kind)):
        for _ in range(count):  # what was hinted and not taken up yet was dealt as well, so it is counted before anything else is
            out[hints.queue_of(places.of(node), kind)] += 1
    rows = places.look(_hintable(now))
    return Seen(now, rows, out, sight.untold(s, places.takers, _due(now)))


def stamp(s: Session, rows: Sequence[Due]) -> list[Due]:
    """Note that these are hinted now. Returns those that are still to be hinted: another tick may have been faster."""
    return _stamp(s, rows, _hintable(database_now(s)))


def _stamp(s: Session, rows: Sequence[Due], still: Sequence[ColumnElement[bool]]) -> list[Due]:
    now, kept = database_now(s), set()
    for start in range(0, len(rows), _BATCH):
        ids = [row.attempt_id for row in rows[start : start + _BATCH]]
        change = update(Attempt).where(Attempt.id.in_(ids), *still).values(last_enqueued_at=now).returning(Attempt.id)
        kept |= set(s.scalars(change.execution_options(synchronize_session=False)))
    return [row for row in rows if row.attempt_id in kept]


def next_heavy(s: Session, node: str) -> Due | None:
    """Return the next attempt of a node that is to be judged or printed, stamped: whoever has just done one hands its place on."""
    now = database_now(s)
    found = _Places(s, now).look([*_due(now), _kind().in_([str(kind) for kind in hints.HEAVY_KINDS])])
    return next(iter(_stamp(s, [row for row in found if row.node == node][:1], _due(now))), None)


def kind_of(s: Session, attempt_id: str) -> str | None:
    """Return the kind of step for which an attempt is to be hinted."""
    return s.scalar(select(_kind()).select_from(Attempt).outerjoin(Step, _AT).where(Attempt.id == attempt_id))


def _kind() -> ColumnElement[str | None]:
    """Return the kind of the step that an attempt is at; none where its next move only stops what runs, whatever it is at.

    Such a move takes milliseconds and has seconds to be made in: it must not wait until there is room for a judgement or a report.
    """
    return case((or_(canceled(), halt.owed()), null()), else_=Step.kind)


def _due(now: datetime) -> list[ColumnElement[bool]]:
    return [movable(), Attempt.next_due_at <= now, unheld(now)]


def _hintable(now: datetime) -> list[ColumnElement[bool]]:
    sent, lost = Attempt.last_enqueued_at, timedelta(seconds=HINT_LOST_S)
    return [*_due(now), or_(sent.is_(None), sent < now - lost, sent > now + lost)]


class _Places:
    """Where due work is to be done: on its own node; what has none, or a silent one, where the fewest attempts are."""

    def __init__(self, s: Session, now: datetime) -> None:
        silent = stale(s, now)
        self._s, self.takers, self._quiet = s, sight.takers(s, silent), set(stale(s, now, CANCEL_STALE_S))
        rows = s.execute(select(Node.name, Node.silent_since).where(Node.name.not_in(silent)).order_by(Node.heartbeat_at.desc())).all()
        living = [row.name for row in rows]
        self._here = settings().node if settings().node in living or not living else living[0]
        self._well = [row.name for row in rows if row.silent_since is None]  # who is missing only may be dead: nothing new is dealt to it
        self._attempts: Counter[str] | None = None

    def of(self, node: str | None, *, cancel: bool = False) -> str:
        """Return the node that is to do the work of this one. An attempt stays where it is dealt to, a soak for 72 h.

        `cancel`: the work is to end an attempt, which waits for nobody and needs no evidence.
        """
        if cancel:
            return node if node and node not in self._quiet else self._here
        if node is None:
            return self._deal(self._well)
        others = self.takers.get(node)
        return node if others is None else self._deal([name for name in others if name in self._well] or others)

    def _deal(self, among: Sequence[str]) -> str:
        """Return which of these nodes has the fewest attempts (whoever asks: two ticks decide alike), and count one more there."""
        if len(among) < 2:
            return next(iter(among), self._here)
        if self._attempts is None:
            counts = select(Attempt.node, func.count()).where(movable(), Attempt.node.is_not(None)).group_by(Attempt.node)
            self._attempts = Counter({str(node): count for node, count in self._s.execute(counts)})
        have = self._attempts
        chosen = min(among, key=lambda name: (have[name], name))
        have[chosen] += 1
        return chosen

    def look(self, conditions: Sequence[ColumnElement[bool]]) -> list[Due]:
        """Return attempts in the order of their turn: the oldest of every engagement, then the second of each."""
        turn = func.row_number().over(partition_by=Attempt.engagement_id, order_by=(Attempt.next_due_at, Attempt.id))
        columns = (Attempt.id, Attempt.generation, Attempt.node, _kind().label("kind"), Attempt.last_enqueued_at, canceled().label("cancel"))
        found = select(*columns).select_from(Attempt).outerjoin(Step, _AT).where(*conditions, not_(sight.stranded(self.takers)))
        rows = self._s.execute(found.order_by(turn, Attempt.next_due_at, Attempt.id).limit(LOOK_MAX))
        return [Due(row.id, row.generation, self.of(row.node, cancel=bool(row.cancel)), row.kind, row.last_enqueued_at) for row in rows]
