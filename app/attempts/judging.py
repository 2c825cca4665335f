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
from app.engagements.models import Engagement
from app.kit.db import Transactions, after_commit
from app.kit.errors import BadInput, FieldProblem, QuadgateError
from app.kit.i18n import N_, pair
from gates.text import Text
from gates.transitions import RunStatus

log = logging.getLogger("quadgate.attempts")
LONGEST_WHY = 500
SHORTEST_WHY = 2  # two characters are a word in Chinese


def judge_again(begin: Transactions, *, attempt_id: str, why: str | Text = "", actor: Actor, reasoned: bool = False) -> VerdictRevision:
    """Judge an attempt that has ended once more, let what follows from it follow, and print its report anew. No transaction is open meanwhile.

    The earlier revisions stay; what holds is the new one. A G2 whose baseline changes by it takes the judgements of G3 that rest on the
    old one along. `reasoned`: a person is asked for the reason, so one is needed. Raises BadInput without it, Refused while the attempt
    goes on, for a rehearsal, and for evidence that is not what its hash says.
    """
    from app.evidence import judgement  # evidence asks attempts for their rows in turn

    require(actor, Permission.JUDGE)
    told = why.strip()[:LONGEST_WHY] if isinstance(why, str) else why
    if reasoned and isinstance(told, str) and len(told) < SHORTEST_WHY:
        field = FieldProblem("/why", N_("Say why it is judged again: the reason stands in the history."))
        raise BadInput("no_reason", N_("It was not judged again: the reason is missing."), [field])
    for _ in range(judgement.TRIES):
        with begin() as s:
            made = judgement.prepare(s, attempt_id=attempt_id, actor=actor)
        document = judgement.judged(made)
        try:
            with begin() as s:
                attempt, engagement = access.find_attempt(s, attempt_id, actor, lock=True)
                before = (engagement.g2_baseline or {}).get("hash")
                revision = judgement.keep(s, made, document, actor=actor, why=told)
                conclude(s, attempt, revision.document, actor)
                changed = attempt.gate == "G2" and (engagement.g2_baseline or {}).get("hash") != before
                others = _resting_on_the_old_baseline(s, engagement) if changed else []
            break
        except judgement.Outdated as error:
            log.info("%s; judged anew", error)
    else:
        raise judgement.changing()
    _print(begin, attempt_id, actor)
    for other in others:
        judge_again(begin, attempt_id=other, why=pair(N_("The frozen baseline of G2 changed.")), actor=actor)
    return revision


def judge_on_agreement(s: Session, *, attempt_id: str, why: Text, actor: Actor) -> None:
    """Have the attempt judged again because both parties agreed on something that the judge is told: as soon as the second approval is committed.

    An approval stands whether or not its consequence can be drawn at once: what stands in the way is recorded, and anybody with the
    permission may have the attempt judged again when it is mended.
    """

    def follow(begin: Transactions) -> None:
        try:
            judge_again(begin, attempt_id=attempt_id, why=why, actor=SYSTEM_AFTER_APPROVAL)
        except QuadgateError as error:
            data = {"reason": error.pair().json(), "code": error.code}
            with begin() as later:
                record(later, actor=actor, action="attempt.judge_failed", object_kind="attempt", object_id=attempt_id, data=data)

    after_commit(s, follow)


# Not the engine in the middle of a step: an attempt that goes on is not judged by an approval.
SYSTEM_AFTER_APPROVAL = Actor(SYSTEM.user_id, SYSTEM.login, SYSTEM.name, "", "", SYSTEM.roles, SYSTEM.locale, "cli")


def _resting_on_the_old_baseline(s: Session, engagement: Engagement) -> list[str]:
    """Return the attempts at G3 that are to be judged by the new baseline; a canceled extension stays sealed."""
    tries = [a for a in repository.attempts_of(s, engagement.id) if a.gate == "G3" and a.verdict is not None]
    return [a.id for a in tries if RunStatus(a.status).ended and sealed_from(s, a, engagement) is None]


def _print(begin: Transactions, attempt_id: str, actor: Actor) -> None:
    """Print the report in both languages; when that fails the verdict stands, and the report is printed again when somebody asks."""
    from app.reports.usecases import print_again

    try:
        print_again(begin, attempt_id=attempt_id, actor=actor)
    except QuadgateError as error:
        log.warning("attempt %s was judged again, but its report could not be printed: %s", attempt_id, error)
