"""What the API takes and gives, as the OpenAPI document has it. Answers are the use cases' own data: these models describe, not filter."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

GateName = Literal["G1", "G2", "G3", "G4"]
Verdict = Literal["pass", "conditional", "fail", "inconclusive", "invalid"]
RunStatus = Literal["queued", "running", "waiting", "lost_contact", "finished", "canceled", "error"]


class Given(BaseModel):
    """An answer: fields may be added in later versions."""

    model_config = ConfigDict(extra="allow")


class Taken(BaseModel):
    """A request body: an unknown field is an error, so a typo is never ignored."""

    model_config = ConfigDict(extra="forbid")


class Words(Given):
    """One sentence in both languages."""

    en: str
    zh: str = Field(alias="zh-CN")


class FieldError(BaseModel):
    """What is wrong with one field."""

    pointer: str = Field(description="JSON pointer into the body (`/plan/g3/sla`), or `/query/limit`, `/header/...`.")
    code: str
    message: str


class Problem(BaseModel):
    """RFC 9457 problem details."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "/api/v1/docs#problem-sign_off_missing",
                "title": "Conflict",
                "status": 409,
                "detail": "The report of attempt 1 at G3 is not signed off by the customer, and the plan requires it before the next gate.",
                "instance": "/api/v1/engagements/0199a/gates/G4/attempts",
                "code": "sign_off_missing",
                "request_id": "0199ad2f-6a51-7cc0-b1a7-2a0a6a1f9d11",
            }
        }
    )
    type: str
    title: str
    status: int
    detail: str
    instance: str = ""
    code: str
    request_id: str
    errors: list[FieldError] = []


class GateView(Given):
    """One gate of an engagement: where it stands, and what its newest attempt is worth."""

    gate: GateName
    title: Words
    state: str
    verdict: Verdict | None
    because: list[str]
    status: RunStatus | None
    attempt_id: str | None
    attempts_used: int
    attempts_max: int
    rehearsals: int


class NextAction(Given):
    """The one thing that brings the engagement on."""

    kind: str
    gate: str | None
    enabled: bool
    label: Words
    reason: Words


class EngagementItem(Given):
    """An engagement as in the list."""

    id: str
    code: str
    customer: str
    vendor: str
    site: str
    contract: str
    state: Literal["draft", "active", "stopped", "not_concluded", "concluded", "closed"]
    version: int
    gates: list[GateView]
    next: NextAction
    packing_warning: Words | None = Field(
        default=None, description="What the packing list lacks of the order, or holds beyond it: as long as that is so G1 cannot pass."
    )


class EngagementPage(BaseModel):
    """A page of engagements; `next` is the cursor of the following page."""

    items: list[EngagementItem]
    next: str | None


class PlanBody(Taken):
    """Differences from the present plan."""

    differences: dict[str, Any] = Field(examples=[{"g3": {"agreement_max": "0.03"}}])


class PlanOdds(Given):
    """The chances of the main gate under a plan, drawn and judged by its own rules; they decide nothing."""

    rule: str
    pairs: int
    trials: int
    verdicts: dict[Verdict, dict[str, str]] = Field(description="By verdict: chance, within (95 % half width), shown.")
    summary: Words
    warnings: list[Words]
    assumptions: list[Words]


class PlanView(Given):
    """The newest revision of a plan."""

    id: str
    revision: int
    hash: str
    sealed_at: str | None
    data: dict[str, Any]
    odds: PlanOdds


class StartBody(Taken):
    """How to start a gate."""

    rehearsal: bool = Field(default=False, description="Practice: never judged, counted and dated in the report.")


class CancelBody(Taken):
    """Why an attempt is canceled."""

    reason: str = Field(min_length=1, max_length=1000, examples=["The site lost cooling."])


class ExtendBody(Taken):
    """What is added to the record when an attempt is extended."""

    said: str = Field(default="", max_length=1000, examples=["Both parties agreed by telephone."])


class JudgeBody(Taken):
    """What an attempt is judged again for; it stands in the record."""

    why: str = Field(default="", max_length=500, examples=["The cause of the reboot was approved."])


class CauseBody(Taken):
    """The cause of one event that broke a soak's run, as `GET .../causes` names it."""

    event: str = Field(min_length=1, max_length=200, examples=["boot:3f1c0a52-8f5e-4b0e-9d8e-0a4c7b1f9e11"])
    kind: str = Field(examples=["power"], description="power, network, cooling, maintenance, host or other")
    text: str = Field(min_length=2, max_length=2000, examples=["The rack lost its feed B at 03:12; see the report of the site."])


class JudgementList(BaseModel):
    """Every judgement of an attempt, the oldest first: the newest holds."""

    items: list[dict[str, Any]]


class WhatIf(Given):
    """Judged evidence under another plan or by another judge, check by check. It is no verdict."""

    no_verdict: Words
    gate: GateName
    plan: list[dict[str, Any]] = Field(description="Fields of the plan that differ: path, from, to.")
    stored: list[dict[str, Any]] = Field(description="What this judge by itself answers otherwise than the verdict on record.")
    read: list[dict[str, Any]] = Field(description="The same, evidence file by evidence file.")
    checks: list[dict[str, Any]] = Field(description="What the other plan would answer otherwise.")
    claims: list[dict[str, Any]]


class CauseList(BaseModel):
    """Every event that broke a soak's run, with its cause and whose approval is missing."""

    items: list[dict[str, Any]]


class StepView(Given):
    """One step of an attempt."""

    id: str
    key: str
    kind: str
    title: Words
    status: str


class AttemptView(Given):
    """An attempt: the run status is one thing, the verdict another."""

    id: str
    gate: GateName
    number: int
    rehearsal: bool
    status: RunStatus
    verdict: Verdict | None
    because: list[str]
    plan_hash: str
    steps: list[StepView]


class EventPage(BaseModel):
    """Events of playbooks, oldest first."""

    items: list[dict[str, Any]]
    next: str | None


class SamplePage(BaseModel):
    """Samples of jobs, oldest first."""

    items: list[dict[str, Any]]
    next: str | None


class VerdictView(Given):
    """verdict.json as judged, with its hash."""

    hash: str
    document: dict[str, Any]


class ReportItem(Given):
    """A report that was made."""

    id: str
    language: Literal["zh-CN", "en"]
    number: str
    sha256: str
    size: int


class ReportList(BaseModel):
    """The reports of an attempt."""

    items: list[ReportItem]


class ApprovalBody(Taken):
    """A decision on the very object that was looked at, named by its hash."""

    object_kind: Literal["plan", "conditional", "sign_off", "rig_cause", "soak_cause", "waiver", "stop_loss", "close", "wipe", "packing"]
    object_id: str = Field(max_length=36)
    object_hash: str = Field(max_length=80)
    decision: Literal["approve", "reject"]
    comment: str = Field(default="", max_length=2000)
    scan: str | None = Field(default=None, description="The scan of the signed report (PDF, PNG or JPEG), base64.", max_length=34_000_000)
    scan_name: str = Field(default="", max_length=120)


class ApprovalView(Given):
    """A recorded decision."""

    id: str
    object_kind: str
    object_id: str
    object_hash: str
    party: str
    person: str
    decision: str


class DeviationBody(Taken):
    """A deviation (done otherwise than planned), a waiver (both parties accept a thing as it is) or a punch item (still to be done)."""

    kind: Literal["deviation", "waiver", "punch"]
    gate: GateName
    severity: Literal["major", "minor"] = "minor"
    what: str = Field(min_length=2, max_length=500)
    reason: str = Field(min_length=2, max_length=2000)
    owner_party: Literal["vendor", "customer"]
    owner: str = Field(min_length=1, max_length=120)
    due: str = Field(description="YYYY-MM-DD", max_length=10, examples=["2026-12-31"])


class CloseBody(Taken):
    """What was done about an entry."""

    closing: str = Field(min_length=2, max_length=2000)


class DeviationView(Given):
    """An entry of the register. A granted waiver changes no verdict and opens no gate."""

    id: str
    label: str
    kind: Literal["deviation", "waiver", "punch"]
    gate: GateName
    what: str
    reason: str
    owner: str
    owner_party: str
    due: str
    state: Literal["open", "proposed", "granted", "rejected", "closed"]
    hash: str


class DeviationList(BaseModel):
    """The register of an engagement."""

    items: list[DeviationView]


class PendingList(BaseModel):
    """What waits for a decision."""

    items: list[dict[str, Any]]
