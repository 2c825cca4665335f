"""Short ways to a state that a test starts from. Everything goes through the use cases, except what the engine would do."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor
from app.approvals.usecases import approve, pending
from app.attempts import repository
from app.attempts import revisions as judgements
from app.attempts.conclude import conclude
from app.attempts.models import Attempt
from app.attempts.usecases import start_attempt
from app.engagements.models import Engagement
from app.engagements.usecases import create_engagement
from app.evidence import store
from app.evidence.usecases import register
from app.kit.clock import now
from app.kit.db import Transactions, new_id
from app.reports.models import Report
from gates.canonical import canonical_bytes
from tests.people import Cast

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64
DEMO = (Path(__file__).parent.parent / "app" / "demo" / "engagement.yaml").read_text(encoding="utf-8")


def demo_plan(text: str = DEMO) -> dict[str, Any]:
    """Return the plan of a demo without what both parties expect of it: that is said of its own tiers, and whoever changes those has others."""
    plan: dict[str, Any] = yaml.safe_load(text)["plan"]
    return {key: value for key, value in plan.items() if key != "expected"}


def within(s: Session) -> Transactions:
    """Let work that opens its own transactions do all of it in one that is open: a test sees what became of its rows at once."""
    return lambda: nullcontext(s)


def engage(s: Session, cast: Cast, text: str = DEMO, *, sealed: bool = True) -> Engagement:
    """Create the demo's engagement; by default both parties seal its plan."""
    engagement = create_engagement(s, text=text, actor=cast.li_wei)
    if sealed:
        decide(s, "plan", cast.chen_jing, cast.wang_fang)
    return engagement


def decide(
    s: Session, kind: str, *actors: Actor, decision: str = "approve", object_id: str = "", comment: str = "我们看过了 / seen", **more: Any
) -> None:
    """Let people decide on what waits for them of one kind."""
    for actor in actors:
        item = next(i for i in pending(s, actor=actor) if i["object_kind"] == kind and object_id in ("", i["object_id"]))
        approve(
            s,
            object_kind=kind,
            object_id=item["object_id"],
            object_hash=item["object_hash"],
            decision=decision,
            comment=comment,
            actor=actor,
            **more,
        )


def document(attempt: Attempt, verdict: str, **more: Any) -> dict[str, Any]:
    """Return a small verdict.json, as a judge would write it."""
    return {
        "schema": 1,
        "gate": attempt.gate,
        "verdict": verdict,
        "because": [],
        "judge_version": "test",
        "rules_hash": "sha256:" + "1" * 64,
        "plan_hash": attempt.plan_hash,
        "checks": [],
        "claims": [],
        "facts": {},
        **more,
    }


def finish(
    s: Session, attempt: Attempt, verdict: str | None = "pass", status: str = "finished", g2_baseline: str | None = None, **more: Any
) -> Attempt:
    """Do what the engine does at the end of an attempt: steps done, verdict kept and concluded, report printed, status set."""
    attempt.status, attempt.finished_at, attempt.next_due_at = status, now(), None
    for step in repository.steps_of(s, attempt.id):
        step.status = "done"
    if verdict is not None:
        told = document(attempt, verdict, **more)
        manifest = store.put_bytes(canonical_bytes({"schema": 1, "attempt": {"id": attempt.id}, "files": []}))
        hashes = {"manifest_hash": "sha256:" + manifest.sha256, "g2_baseline": g2_baseline}
        revision = judgements.add(s, attempt_id=attempt.id, document=told, actor=SYSTEM, **hashes)
        report = Report(
            id=new_id(), attempt_id=attempt.id, language="zh-CN", revision=0, number=f"ACC-{attempt.gate}", sha256="0" * 64, size=1, at=now()
        )
        report.manifest_hash, report.verdict_hash = revision.manifest_hash, revision.hash
        s.add(report)
        s.flush()
        conclude(s, attempt, told)
    s.flush()
    return attempt


def run(s: Session, cast: Cast, engagement: Engagement, gate: str, verdict: str | None = "pass", *, sign: bool = True, **more: Any) -> Attempt:
    """Start an attempt and end it with a verdict; sign it off where a pass needs it."""
    attempt = finish(s, start_attempt(s, engagement_id=engagement.id, gate=gate, actor=cast.li_wei), verdict, **more)
    if sign and verdict == "pass" and gate in ("G3", "G4"):
        decide(s, "sign_off", cast.chen_jing, cast.wang_fang, object_id=attempt.id, scan=PNG, scan_name="scan.png")
    return attempt


def bring(s: Session, attempt: Attempt, path: str, data: bytes) -> None:
    """Register one evidence file, as the engine does."""
    register(
        s, attempt_id=attempt.id, step_id=None, path=path, stored=store.put_bytes(data), host="gpu01", tool="probe", tool_version="1", actor=SYSTEM
    )
