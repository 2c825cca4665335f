"""The store of judgements: each is a revision of an attempt's verdict, and none replaces another.

What holds for an engagement is the newest revision. What the parties decided about an earlier one goes on to hold only as long as no
later one changed its substance: the verdict, its reasons, or the verdict of any check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.accounts.actor import Actor
from app.attempts.models import VerdictRevision
from app.kit.clock import now
from app.kit.db import new_id
from gates.canonical import sha256_of
from gates.model import Verdict


@dataclass(frozen=True)
class InForce:
    """What stands now of one attempt: the hashes that a decision may have named to be one about the present verdict."""

    verdict_hashes: frozenset[str] = frozenset()
    manifest_hashes: frozenset[str] = frozenset()
    since_fail: frozenset[str] = frozenset()  # of the newest fail and all that came after it
    failed: bool = False  # there is a fail among the judgements
    failing: bool = False  # the newest judgement is one
    g2_baseline: str | None = None  # hash of the baseline that the newest judgement of G3 rests on; None: not known
    since: datetime | None = None  # when the verdict was first reached that holds

    @property
    def lift_hashes(self) -> frozenset[str]:
        """Return the verdicts whose lifting holds: of a fail that stands, that one alone; of a fail that was judged away, it and what came after."""
        return self.verdict_hashes if self.failing else self.since_fail


def substance(document: Mapping[str, Any]) -> str:
    """Return the hash of what people agree to when they agree to a verdict; wording, versions and hashes of a judge are no part of it."""
    checks = {str(c["id"]): [c.get("verdict"), c.get("because"), c.get("severity")] for c in document.get("checks") or []}
    return sha256_of({"verdict": document.get("verdict"), "because": list(document.get("because") or []), "checks": checks})


def add(
    s: Session,
    *,
    attempt_id: str,
    document: dict[str, Any],
    manifest_hash: str,
    actor: Actor,
    why: str = "",
    g2_baseline: str | None = None,
) -> VerdictRevision:
    """Keep a judgement as the attempt's next revision. `why` says what it was made anew for; it stays empty for the first."""
    last = newest(s, attempt_id)
    row = VerdictRevision(
        id=new_id(),
        attempt_id=attempt_id,
        revision=last.revision + 1 if last else 1,
        verdict=str(document["verdict"]),
        document=document,
        hash=sha256_of(document),
        substance=substance(document),
        judge_version=str(document.get("judge_version") or ""),
        rules_hash=str(document.get("rules_hash") or ""),
        plan_hash=str(document.get("plan_hash") or ""),
        manifest_hash=manifest_hash,
        g2_baseline=g2_baseline,
        judged_by=actor.name,
        why=why,
        at=now(),
    )
    s.add(row)
    s.flush()
    return row


def newest(s: Session, attempt_id: str) -> VerdictRevision | None:
    """Return the newest judgement of an attempt, or None."""
    query = select(VerdictRevision).where(VerdictRevision.attempt_id == attempt_id).order_by(VerdictRevision.revision.desc()).limit(1)
    return s.execute(query).scalar_one_or_none()


def in_force(s: Session, attempt_ids: Iterable[str]) -> dict[str, InForce]:
    """Return what stands of each attempt that was judged: its newest revision and those before it with the same substance."""
    v = VerdictRevision
    query = (
        select(v.attempt_id, v.verdict, v.substance, v.hash, v.manifest_hash, v.g2_baseline, v.at)
        .where(v.attempt_id.in_(list(attempt_ids)))
        .order_by(v.attempt_id, v.revision.desc())
    )
    found: dict[str, InForce] = {}
    standing: dict[str, str | None] = {}  # the substance that still counts; None: an older revision differed, so nothing before it does
    for attempt_id, verdict, told, verdict_hash, manifest_hash, baseline, at in s.execute(query):
        before, fails = found.get(attempt_id), verdict == Verdict.FAIL
        one = frozenset({verdict_hash})
        if before is None:
            standing[attempt_id] = told
            found[attempt_id] = InForce(one, frozenset({manifest_hash}), one, fails, fails, baseline, at)
            continue
        found[attempt_id] = before if before.failed else replace(before, since_fail=before.since_fail | one, failed=fails)
        if told and standing[attempt_id] == told:
            verdicts, manifests = before.verdict_hashes | {verdict_hash}, before.manifest_hashes | {manifest_hash}
            found[attempt_id] = replace(found[attempt_id], verdict_hashes=verdicts, manifest_hashes=manifests, since=at)
        else:
            standing[attempt_id] = None
    return found


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every check whose answer differs between two verdicts: {check, title, from, to, value_from, value_to, reason}.

    A check that is new or gone has null on one side. `from` and `to` are verdicts; a value that moved under the same verdict is shown too.
    """
    old, new = ({str(c["id"]): c for c in d.get("checks") or []} for d in (before, after))
    out = []
    for key in dict.fromkeys((*new, *old)):
        a, b = old.get(key) or {}, new.get(key) or {}
        if any(a.get(name) != b.get(name) for name in ("verdict", "because", "value", "limit")):
            row = {"check": key, "title": (b or a).get("title"), "from": a.get("verdict"), "to": b.get("verdict")}
            out.append({**row, "value_from": a.get("value"), "value_to": b.get("value"), "reason": (b or a).get("reason")})
    return out
