"""Judging an attempt again, from stored evidence and present inputs: a further revision, its consequences, and a new issue of the report."""

from __future__ import annotations

import logging

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor, require
from app.accounts.roles import Permission
from app.attempts import access, repository
from app.attempts.conclude import conclude
from app.attempts.models import VerdictRevision
from app.attempts.sealing import sealed_from
from app.audit.chain import record
from app.kit.errors import QuadgateError
from app.kit.i18n import N_, pair
from gates.text import Text
from gates.transitions import RunStatus

log = logging.getLogger("quadgate.attempts")
LONGEST_WHY = 500


def judge_again(s: Session, *, attempt_id: str, why: str | Text = "", actor: Actor) -> VerdictRevision:
    """Judge an attempt that has ended once more, let what follows from it follow, and print its report anew.

    The earlier revisions stay; what holds is the new one. A G2 whose baseline changes by it takes the judgements of G3 that rest on the
    old one along. Raises Refused while the attempt goes on, for a rehearsal, and for evidence that is not what its hash says.
    """
    from app.evidence.usecases import judge_attempt  # evidence asks attempts for their rows in turn

    require(actor, Permission.JUDGE)
    attempt, engagement = access.find_attempt(s, attempt_id, actor, lock=True)
    before = (engagement.g2_baseline or {}).get("hash")
    revision = judge_attempt(s, attempt_id=attempt_id, actor=actor, why=why.strip()[:LONGEST_WHY] if isinstance(why, str) else why)
    conclude(s, attempt, revision.document, actor)
    _print(s, attempt_id, actor)
    if attempt.gate == "G2" and (engagement.g2_baseline or {}).get("hash") != before:
        for other in repository.attempts_of(s, engagement.id):
            open_to_it = other.verdict is not None and sealed_from(s, other, engagement) is None  # a canceled extension stays sealed
            if other.gate == "G3" and open_to_it and RunStatus(other.status).ended:
                judge_again(s, attempt_id=other.id, why=pair(N_("The frozen baseline of G2 changed.")), actor=actor)
    return revision


def judge_on_agreement(s: Session, *, attempt_id: str, why: Text, actor: Actor) -> None:
    """Judge again because both parties agreed on something that the judge is told, in the transaction of the second approval.

    An approval stands whether or not its consequence can be drawn at once: what stands in the way is recorded, and anybody with the
    permission may have the attempt judged again when it is mended.
    """
    try:
        with s.begin_nested():
            judge_again(s, attempt_id=attempt_id, why=why, actor=SYSTEM_AFTER_APPROVAL)
    except QuadgateError as error:
        told = error.pair()
        data = {"reason": told.json(), "code": error.code}
        record(s, actor=actor, action="attempt.judge_failed", object_kind="attempt", object_id=attempt_id, data=data)


# Not the engine in the middle of a step: an attempt that goes on is not judged by an approval.
SYSTEM_AFTER_APPROVAL = Actor(SYSTEM.user_id, SYSTEM.login, SYSTEM.name, "", "", SYSTEM.roles, SYSTEM.locale, "cli")


def _print(s: Session, attempt_id: str, actor: Actor) -> None:
    """Print the report in both languages; when that fails the verdict stands, and the report is printed again when somebody asks."""
    from app.reports.usecases import print_again

    try:
        with s.begin_nested():
            print_again(s, attempt_id=attempt_id, actor=actor)
    except QuadgateError as error:
        log.warning("attempt %s was judged again, but its report could not be printed: %s", attempt_id, error)
