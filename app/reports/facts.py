"""All that a report rests on, as plain JSON data, gathered from the features before a word is printed.

The hash of these facts is the report's basis: the same facts give the same revision in both languages, and other facts
(a new judgement, a new approval) the next one.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from gates.canonical import sha256_of

_DERIVED = ("signed", "since")  # of approvals and judgements


@dataclass(frozen=True)
class Facts:
    """Times are ISO 8601 texts in UTC. `attempts` holds every formal attempt and rehearsal of the gate, oldest first."""

    engagement: dict[str, Any]  # code, customer, vendor, site, contract, order, packing_list, targets, people
    plan: dict[str, Any]
    plan_hash: str
    plan_revision: int
    sealed_at: str | None
    attempt: dict[str, Any]  # id, gate, number, rehearsal, status, started_at, finished_at, ...
    attempts: list[dict[str, Any]] = field(default_factory=list)
    verdict: dict[str, Any] | None = None  # {revision, hash, at, manifest_hash, document}: the newest judgement
    verdicts: list[dict[str, Any]] = field(default_factory=list)  # every judgement: {revision, verdict, hash, at, judge_version}
    manifest: dict[str, Any] = field(default_factory=dict)
    approvals: list[dict[str, Any]] = field(default_factory=list)
    forms: list[dict[str, Any]] = field(default_factory=list)  # manual steps: {title, fields as declared, form, photos}
    deviations: list[dict[str, Any]] = field(default_factory=list)  # entries of the register, as app.deviations.views shows them
    signed: bool = False  # both parties signed off what holds now; words about an earlier judgement that said something else do not count
    since: str | None = None  # when the verdict was first reached that holds

    @property
    def basis(self) -> str:
        """Return `sha256:<hex>` over all facts; of the manifest its files, since its time of making says nothing before a judgement."""
        told = {key: value for key, value in asdict(self).items() if key not in _DERIVED}
        return sha256_of({**told, "manifest": self.manifest.get("files") or []})

    @property
    def document(self) -> dict[str, Any]:
        """Return the newest verdict.json; empty while nothing was judged."""
        return dict(self.verdict["document"]) if self.verdict else {}

    @property
    def gate(self) -> str:
        """Return the gate's name: G1 to G4."""
        return str(self.attempt["gate"])

    @property
    def manifest_hash(self) -> str:
        """Return the hash of the evidence manifest as judged, or of the manifest as it stands; empty without one."""
        judged = str((self.verdict or {}).get("manifest_hash") or self.document.get("manifest_hash") or "")
        return judged or (sha256_of(self.manifest) if self.manifest else "")

    @property
    def issued_at(self) -> str:
        """Return the time of the newest fact: the one clock of the document, so that its bytes can be made again."""
        times = [str(self.attempt.get("created_at") or ""), str(self.attempt.get("finished_at") or "")]
        times += [str(v.get("at") or "") for v in self.verdicts]
        times += [str(a.get("at") or "") for a in self.approvals]
        times += [str(d.get(name) or "") for d in self.deviations for name in ("created_at", "closed_at")]
        return max(times)

    @property
    def simulated(self) -> bool:
        """Tell whether any part says that the target is simulated: one is enough."""
        rig = self.plan.get("rig") or {}
        targets = self.engagement.get("targets") or {}
        return any(bool(part.get("simulated")) for part in (self.document, self.manifest, rig, targets))
