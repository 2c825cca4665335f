"""Which node sees whose evidence. A node takes over from a silent one only what it can also judge: with its evidence, which exists once.

At each heartbeat a node shows a file in its evidence store and looks there for those of the others (evidence/sharing.py); its row says what it saw.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, and_, func, not_, or_, select
from sqlalchemy.orm import Session

from app.attempts.models import Attempt
from app.engine import words
from app.engine.models import Node
from app.engine.policy import NODE_STALE_S
from app.evidence import sharing
from app.kit.db import read_session
from app.kit.errors import QuadgateError

log = logging.getLogger("quadgate.engine")


@dataclass(frozen=True)
class Look:
    """What a node found out about the stores: the name of its own file (None: its store takes none), the one it replaces, whose it sees."""

    token: str | None
    before: str | None
    sees: list[str]


def look(node: str, *, anew: bool = False) -> Look:
    """Show a file where ours is missing (or `anew`), and look for those of the others. Holds no transaction: a store may be slow."""
    with read_session() as s:
        tokens = {row.name: row.evidence_token for row in s.execute(select(Node.name, Node.evidence_token))}
    before = token = tokens.pop(node, None)
    try:
        if anew or not sharing.shown(token):
            token = sharing.show(node)
    except QuadgateError as error:
        log.warning("node %s: %s", node, error)
        token = None
    return Look(token, before, sorted(name for name, shown in tokens.items() if sharing.shown(shown)))


def takable(s: Session, node: str, silent: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that an attempt of a silent node may be taken over by this one: it sees its evidence, or there is only to be canceled."""
    seen = set(s.scalar(select(Node.sees).where(Node.name == node)) or []) if silent else set()
    visible = [name for name in silent if name in seen]
    return or_(Attempt.node.in_(visible), and_(Attempt.node.in_(list(silent)), _to_be_canceled()))


def _to_be_canceled() -> ColumnElement[bool]:
    return and_(Attempt.cancel_requested_at.is_not(None), Attempt.verdict.is_(None))  # a verdict that is reached stays reached (engine/move.py)


def takers(s: Session, silent: Sequence[str]) -> dict[str, list[str]]:
    """Return who may take over from each silent node: the living nodes that see its evidence, the latest heard first."""
    if not silent:
        return {}
    living = s.execute(select(Node.name, Node.sees).where(Node.name.not_in(silent)).order_by(Node.heartbeat_at.desc()))
    sees = {row.name: set(row.sees or []) for row in living}
    return {name: [other for other, seen in sees.items() if name in seen] for name in silent}


def stranded(who: Mapping[str, Sequence[str]]) -> ColumnElement[bool]:
    """Return the condition that nobody may go on with an attempt: its node is silent, no living one sees its evidence, no cancel is asked for."""
    unseen = [name for name, others in who.items() if not others]
    return and_(Attempt.node.is_not(None), Attempt.node.in_(unseen), not_(_to_be_canceled()))


def untold(s: Session, who: Mapping[str, Sequence[str]], due: Sequence[ColumnElement[bool]]) -> list[str]:
    """Return the due attempts that are stranded and do not say so yet."""
    if all(who.values()):
        return []
    rows = s.execute(select(Attempt.id, Attempt.problem).where(*due, stranded(who)))
    return [row.id for row in rows if not words.is_stranded(row.problem)]


def tell(s: Session, attempts: Sequence[str]) -> None:
    """Say on stranded attempts why nobody goes on with them; whoever does so later takes the sentence back (engine/claim.py)."""
    for attempt in s.scalars(select(Attempt).where(Attempt.id.in_(attempts)).with_for_update()):
        attempt.problem = words.stranded(str(attempt.node), NODE_STALE_S).json()
        log.warning("attempt %s: %s", attempt.id, attempt.problem["en"])


def blind(s: Session, now: datetime, silent: Sequence[str]) -> list[str]:
    """Return a sentence for each node that does not see the evidence of another, and for what waits for a silent node; none where all is well."""
    rows = list(s.scalars(select(Node).where(Node.name.not_in(silent)).order_by(Node.name)))
    found = [f"node {row.name} could not write into its evidence store" for row in rows if row.evidence_token is None]
    shown = [row for row in rows if row.evidence_token is not None]
    found += [f"node {a.name} does not see the evidence of node {b.name}" for a in rows for b in shown if a is not b and b.name not in (a.sees or [])]
    found += [
        f"the evidence store of this process does not show the evidence of node {row.name}" for row in shown if not sharing.shown(row.evidence_token)
    ]
    waiting = stranded(takers(s, silent))
    counts = s.execute(select(Attempt.node, func.count()).where(waiting, Attempt.next_due_at <= now).group_by(Attempt.node))
    return found + [f"due attempts that wait for the silent node {node}, whose evidence nobody else sees: {count}" for node, count in counts]
