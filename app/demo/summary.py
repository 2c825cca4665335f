"""summary.json of a demo, and the files that it points at (DESIGN section 8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from app.accounts.actor import Actor
from app.attempts.usecases import attempt_view
from app.engagements.usecases import overview
from app.engine import durable
from app.evidence import store
from app.evidence.usecases import export_bundle
from app.kit.db import read_session, write_session

GATES = ("G1", "G2", "G3", "G4")
NOT_STARTED = "not_started"


def write_summary(out: Path, engagement_id: str, actor: Actor, extra: dict[str, Any]) -> dict[str, Any]:
    """Export bundles and reports below `out` and write summary.json last, each whole or not at all; returns it. Paths are relative to `out`."""
    with read_session() as session:
        view = overview(session, engagement_id=engagement_id, actor=actor)
    summary: dict[str, Any] = {
        "schema": 1,
        "engagement": {"id": view["id"], "code": view["code"], "state": view["state"], "state_reason": view["state_reason"]},
        "plan_hash": view["plan"]["hash"],
        "simulated": view["simulated"],
        "gates": {gate: _gate(out, view, gate, actor) for gate in GATES},
        **extra,
    }
    _write(out / "summary.json", (json.dumps(summary, ensure_ascii=False, indent=2) + "\n").encode())
    return summary


def _gate(out: Path, view: dict[str, Any], gate: str, actor: Actor) -> dict[str, Any]:
    """Return one gate's entry; a gate that never ran says what kept it."""
    state = next(g for g in view["gates"] if g["gate"] == gate)
    attempts = [a for a in view["attempts"] if a["gate"] == gate and not a["rehearsal"]]
    row: dict[str, Any] = {
        "verdict": None,
        "because": [],
        "run_status": NOT_STARTED,
        "blocked_by": None,
        "reasons": [],
        "attempts": len(attempts),
        "report": None,
        "reports": {},
        "bundle": None,
        "manifest_hash": None,
    }
    if not attempts:
        row["blocked_by"] = state["reason"]
        return row
    newest = max(attempts, key=lambda a: a["number"])
    with read_session() as session:
        attempt = attempt_view(session, attempt_id=newest["id"], actor=actor)
    row.update(verdict=attempt["verdict"], because=attempt["because"] or [], run_status=attempt["status"], reasons=_reasons(attempt))
    row["reports"] = {r["language"]: _copy_report(out, gate, r) for r in attempt["reports"]}
    row["report"] = row["reports"].get("zh-CN")
    if attempt["document"]:
        bundle = out / "bundles" / f"{gate}.zip"
        bundle.parent.mkdir(exist_ok=True)
        with write_session() as session:  # exporting evidence is recorded in the audit chain
            export_bundle(session, attempt_id=attempt["id"], dest=bundle, actor=actor)
        row["bundle"] = str(bundle.relative_to(out))
        row["manifest_hash"] = attempt["manifest_hash"]
    return row


def _reasons(attempt: dict[str, Any]) -> list[dict[str, str]]:
    """Return the sentences that decided: the problem of an attempt in error, else the checks and claims that agree with the verdict."""
    if attempt["problem"]:
        return [{"en": attempt["problem"]["en"], "zh-CN": attempt["problem"]["zh-CN"]}]
    document = attempt["document"]
    if not document:
        return []
    if document["verdict"] == "pass":
        return [document["summary"]]
    deciding = [c["reason"] for c in document["checks"] if c["severity"] == "blocking" and c["verdict"] == document["verdict"]]
    if document["verdict"] == "invalid":
        deciding = [c["reason"] for c in document["claims"] if c["status"] == "breached"] + deciding
    return deciding or [document["summary"]]


def _copy_report(out: Path, gate: str, report: dict[str, Any]) -> str:
    """Copy one PDF out of the store under a name that a person can read."""
    target = out / "reports" / f"{gate}.{report['language']}.pdf"
    target.parent.mkdir(exist_ok=True)
    _write(target, store.read(report["sha256"]))
    return str(target.relative_to(out))


def _write(path: Path, data: bytes) -> None:
    """Write a file that is whole or not there, whenever the demo is interrupted; anybody may read it."""
    durable.write_bytes(path, data, 0o644)
