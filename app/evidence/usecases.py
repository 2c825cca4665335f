"""Evidence: registered file by file, listed in a manifest, judged, and handed out as a bundle that anybody can judge again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.actor import SYSTEM, Actor, require
from app.accounts.roles import Permission
from app.approvals.repository import approvals_of
from app.attempts import causes
from app.attempts import repository as attempts
from app.attempts.access import find_attempt
from app.attempts.models import Attempt
from app.attempts.sealing import sealed_from
from app.audit.chain import record
from app.engagements import repository as engagements
from app.engagements.facts import decisions
from app.engagements.models import Engagement
from app.evidence import bundles, repository, store
from app.evidence.models import EvidenceFile
from app.evidence.store import Stored
from app.kit.clock import now, stamp
from app.kit.db import new_id, writes
from app.kit.errors import NotFound, Refused
from app.kit.i18n import N_
from app.kit.words import in_words
from app.packing import repository as packing
from app.plans import repository as plans
from app.plans.models import PlanRevision
from app.plans.reading import plan_of
from gates.bundle import Bundle, make_manifest
from gates.canonical import canonical_bytes, sha256_of
from gates.model import StepKind
from gates.transitions import RunStatus

EXTENSION = ("pairs", "from_verdict", "from_manifest", "at", "by", "said")  # what a bundle is told of an extension
FROZEN = ("hash", "tiers", "engine")  # what a bundle of G3 is told of the baseline that G2 froze
INTERRUPTIONS = (RunStatus.CANCELED, RunStatus.ERROR, RunStatus.LOST_CONTACT)


def register(
    s: Session,
    *,
    attempt_id: str,
    step_id: str | None,
    path: str,
    stored: Stored,
    host: str = "",
    tool: str = "",
    tool_version: str = "",
    argv: list[Any] | None = None,
    exit_code: int | None = None,
    clocks: dict[str, Any] | None = None,
    actor: Actor = SYSTEM,
) -> EvidenceFile:
    """Enter a stored file into an attempt's evidence under its path in the bundle.

    The same bytes again change nothing. Other bytes under a path that is taken (a step that was repeated) take its place, and the
    audit chain keeps both hashes. Raises Refused once the attempt is judged: then its evidence is closed.
    """
    attempt, _ = rows_of(s, attempt_id)
    if attempt.verdict is not None or _judged_before(s, attempt, step_id):
        raise Refused("evidence_closed", N_("The attempt is judged, so its evidence is closed: {path} was not taken."), path=path)
    return enter(
        s, attempt, step_id, path, stored, actor, host=host, tool=tool, tool_version=tool_version, argv=argv, exit_code=exit_code, clocks=clocks
    )


def inputs(s: Session, attempt_id: str) -> dict[str, Any]:
    """Return evidence/inputs.json: what the engagement knows and no target can tell (docs/evidence-format.md)."""
    attempt, engagement = rows_of(s, attempt_id)
    status = _measured(s, attempt)
    hosts: dict[str, list[str]] = {}
    for name, host in engagement.targets["hosts"].items():
        for group in host["groups"]:
            hosts.setdefault(group, []).append(name)
    baseline = engagement.g2_baseline
    return {
        "schema": 1,
        "engagement": {key: getattr(engagement, key) for key in ("code", "customer", "vendor", "site", "contract")},
        "order": engagement.order,
        "packing_list": packing.list_of(s, engagement, attempt.packing_number),
        "hosts": {group: sorted(names) for group, names in hosts.items()},
        "simulated": bool(engagement.targets["simulated"]),
        "g2_baseline": {key: baseline.get(key) for key in FROZEN} if baseline and attempt.gate == "G3" else None,
        "injections": [i for step in attempts.steps_of(s, attempt_id) for i in (step.result or {}).get("injections") or []],
        "rig_causes": _causes(s, attempt, engagement),
        "interruption": str(status) if status in INTERRUPTIONS else None,
        "extension": {key: attempt.extension[key] for key in EXTENSION} if attempt.extension else None,
    }


def manifest(s: Session, attempt_id: str) -> dict[str, Any]:
    """Return an attempt's manifest: the one that was judged, or what it would be now."""
    judged = attempts.verdicts_of(s, attempt_id)
    if judged:
        kept: dict[str, Any] = json.loads(store.read(judged[-1].manifest_hash.removeprefix("sha256:")))
        return kept
    return present_manifest(s, attempt_id)


def opened(listed: Mapping[str, Any], verdict: Mapping[str, Any] | None = None) -> Bundle:
    """Return a manifest's bundle over the store. All of it is checked first, as whoever judges the exported bundle does. Raises QuadgateError."""
    digests = {entry["path"]: entry["sha256"] for entry in listed["files"]}
    bundles.check(digests)
    return Bundle(listed, lambda path: bundles.stored(path, digests[path]), stream=lambda path: bundles.blocks(path, digests[path]), verdict=verdict)


def judged_bundle(s: Session, *, attempt_id: str, actor: Actor) -> Bundle:
    """Return the bundle of an attempt's newest judgement, with its verdict: while an extension runs, the one before it.

    Raises Refused while there is none.
    """
    require(actor, Permission.EXPORT_EVIDENCE)
    attempt, _ = find_attempt(s, attempt_id, actor)
    judged = attempts.verdicts_of(s, attempt_id)
    if not judged:
        raise Refused("no_verdict_yet", N_("This attempt has no verdict; its run status is {status}."), status=in_words("status", attempt.status))
    return opened(manifest(s, attempt_id), judged[-1].document)


def export_bundle(s: Session, *, attempt_id: str, dest: Path, actor: Actor) -> Path:
    """Write an attempt's bundle to `dest`: a zip when it ends in .zip, else a directory; the same bundle gives the same bytes.

    The bundle is that of the newest judgement: while an extension runs, the one before it. Raises Refused for an attempt at the main gate
    that was not judged, or when something stands at `dest` already.
    """
    require(actor, Permission.EXPORT_EVIDENCE)
    attempt, engagement = find_attempt(s, attempt_id, actor)
    judged = attempts.verdicts_of(s, attempt_id)
    if not judged and sealed_from(s, attempt, engagement) is not None:
        raise Refused(
            "figures_sealed",
            N_(
                "The evidence of an attempt at {gate} is handed out when it is judged, or when the gate is over: until then nobody compares the arms."
            ),
            gate=attempt.gate,
        )
    listed = manifest(s, attempt_id)
    verdict = canonical_bytes(judged[-1].document) if judged else None
    bundles.write(dest, canonical_bytes(listed), [(f["path"], f["sha256"]) for f in listed["files"]], verdict)
    if writes(s):  # a reading transaction hands out the same bytes, and leaves no trace since it cannot
        record(s, actor=actor, action="evidence.export", object_kind="attempt", object_id=attempt_id, data={"manifest_hash": sha256_of(listed)})
    return dest


def _causes(s: Session, attempt: Attempt, engagement: Engagement) -> list[dict[str, Any]]:
    """Return the causes that people recorded: of the whole attempt (event `attempt`), and of single events of a soak."""
    given = approvals_of(s, engagement.id)
    whole = decisions(given, "rig_cause", attempt.id)
    out = []
    if attempt.rig_cause:
        out.append(
            {"event": "attempt", "kind": "claimed", "text": attempt.rig_cause, "approved": whole.agreed, "missing": list(whole.missing), "by": ""}
        )
    for row in causes.newest_of(s, [attempt.id]):
        said = decisions(given, "soak_cause", row.id, {causes.digest(row)})
        about = {"event": row.event, "hour": row.hour, "kind": row.kind, "text": row.text, "by": row.person, "party": row.party}
        out.append({**about, "approved": said.agreed, "missing": list(said.missing)})
    return out


def _judged_before(s: Session, attempt: Attempt, step_id: str | None) -> bool:
    """Tell whether evidence of a step was closed by the verdict that an extension goes on from."""
    step = attempts.step(s, step_id) if step_id and attempt.extension else None
    return step is not None and attempt.extension is not None and step.position < int(attempt.extension["position"])


def present_manifest(s: Session, attempt_id: str) -> dict[str, Any]:
    """Return what an attempt's manifest would be now."""
    attempt, engagement = rows_of(s, attempt_id)
    plan_row = plans.revision(s, attempt.plan_id) or PlanRevision()
    keys = {step.id: step.key for step in attempts.steps_of(s, attempt_id)}
    files = repository.files_of(s, attempt_id)
    status = _measured(s, attempt)
    # While the judge step runs the attempt is still `running`; what the evidence shows is an attempt that measured to its end.
    seen = status if status.ended or status in INTERRUPTIONS else RunStatus.FINISHED
    return make_manifest(
        plan=plan_of(plan_row),
        gate=attempt.gate,
        attempt={"id": attempt.id, "number": attempt.number, "rehearsal": attempt.rehearsal, "seed": attempt.seed, "status": str(seen)},
        simulated=bool(engagement.targets["simulated"]),
        # The time of the newest evidence: the manifest of the same files is the same manifest.
        created_at=stamp(max((f.at for f in files), default=attempt.created_at)) or "",
        files=[
            {
                "path": f.path,
                "size": f.size,
                "sha256": f.sha256,
                "tool": f.tool,
                "version": f.tool_version,
                "argv": f.argv,
                "exit_code": f.exit_code,
                "host": f.host,
                "step": keys.get(f.step_id or "", ""),
                "clocks": f.clocks,
            }
            for f in files
        ],
    )


def _measured(s: Session, attempt: Attempt) -> RunStatus:
    """Return the status of an attempt as far as its evidence goes: one whose report alone could not be written was measured to its end."""
    status, left = RunStatus(attempt.status), [step.kind for step in attempts.steps_of(s, attempt.id) if not step.settled]
    return RunStatus.FINISHED if status is RunStatus.ERROR and left and set(left) == {StepKind.REPORT} else status


def enter(s: Session, attempt: Attempt, step_id: str | None, path: str, stored: Stored, actor: Actor, **about: Any) -> EvidenceFile:
    """Insert or renew the row of a path, and record it."""
    if not re.fullmatch(r"evidence/[^\x00-\x1f\\]{1,280}", path) or {"", ".", ".."} & set(path.split("/")):
        raise Refused("bad_path", N_("{path} is no path of an evidence bundle."), path=repr(path))
    row = repository.file_at(s, attempt.id, path)
    if row is not None and row.sha256 == stored.sha256:
        return row
    before = row.sha256 if row else None
    if row is None:
        row = EvidenceFile(id=new_id(), attempt_id=attempt.id, path=path)
        s.add(row)
    row.step_id, row.sha256, row.size, row.at = step_id, stored.sha256, stored.size, now()
    for name, value in about.items():
        setattr(row, name, value)
    s.flush()
    data = {"path": path, "sha256": stored.sha256, "size": stored.size, "replaces": before}
    record(s, actor=actor, action="evidence.add", object_kind="attempt", object_id=attempt.id, data=data)
    return row


def rows_of(s: Session, attempt_id: str) -> tuple[Attempt, Engagement]:
    """Return an attempt with its engagement. Raises NotFound."""
    attempt = attempts.attempt(s, attempt_id)
    engagement = engagements.engagement(s, attempt.engagement_id) if attempt else None
    if attempt is None or engagement is None:
        raise NotFound("no_such_attempt", N_("There is no attempt {id}."), id=attempt_id)
    return attempt, engagement
