"""The words of a judgement: verdicts, checks, claims, steps. Frozen data only; no rule and no I/O stands here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gates.text import Text

if TYPE_CHECKING:
    from gates.plan import Plan


class Verdict(StrEnum):
    """What a gate, a check or an attempt is worth. Never mixed with the run status."""

    PASS = "pass"  # noqa: S105 - a verdict, no secret
    CONDITIONAL = "conditional"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"


# The engine hosts whose engine is driven from elsewhere: all of the group `engine`, where no load generator is one of them. It follows from the
# inventory and stands in no engagement.
ATTENDED = "attended"
MORE_PAIRS = "more_pairs"  # what would answer an inconclusive check: run pairs beyond those that were measured


class Because(StrEnum):
    """Why a verdict is conditional."""

    GUARD = "guard"
    ABOVE_BAND = "above_band"
    FRAGILE = "fragile"


class Severity(StrEnum):
    """Whether a check decides the gate or only informs."""

    BLOCKING = "blocking"
    ADVISORY = "advisory"


class ClaimStatus(StrEnum):
    """How one claim of validity stands for one arm."""

    HOLDS = "holds"
    BREACHED = "breached"
    UNKNOWN = "unknown"
    NOT_TESTED = "not_tested"  # by agreement of both parties, named in the plan
    NOT_APPLICABLE = "not_applicable"


class Attribution(StrEnum):
    """Whose fault a breach is (DESIGN 4.3)."""

    RIG = "rig"
    PRODUCT = "product"


class StepKind(StrEnum):
    """What moves a step: a playbook run, a detached job on a target, a judgement, a person, or the report writer."""

    PLAYBOOK = "playbook"
    JOB = "job"
    MANUAL = "manual"
    JUDGE = "judge"
    REPORT = "report"


@dataclass(frozen=True)
class Observation:
    """One measured fact: a quantity with an exact value, a unit, labels, and the evidence it came from."""

    quantity: str
    value: Decimal | str
    unit: str
    labels: dict[str, str] = field(default_factory=dict)
    evidence: str = ""

    def json(self) -> dict[str, Any]:
        """Return the form that `quadgate read` prints: the value is always a string."""
        return {"quantity": self.quantity, "value": str(self.value), "unit": self.unit, "labels": dict(self.labels)}


@dataclass(frozen=True)
class Problem:
    """Something that keeps evidence from being used: a stable code and a sentence that says where and what."""

    code: str
    message: Text
    evidence: str = ""


@dataclass(frozen=True)
class Reading:
    """What a reader made of one file. A reading with problems is never complete."""

    observations: tuple[Observation, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Limit:
    """The limit of a check as sealed: `op` is one of `>=`, `<=`, `==`, `band`, `set`, `none`."""

    op: str
    low: Decimal | str | None = None
    high: Decimal | str | None = None

    def json(self) -> dict[str, Any]:
        """Return the form that stands in verdict.json."""
        return {"op": self.op, "low": _plain(self.low), "high": _plain(self.high)}


@dataclass(frozen=True)
class Interval:
    """A one-sided interval around an estimate, or the reason why there is none (`note`)."""

    low: Decimal | None = None
    high: Decimal | None = None
    confidence: Decimal | None = None
    n: int = 0
    note: Text | None = None

    def json(self) -> dict[str, Any]:
        """Return the form that stands in verdict.json."""
        return {
            "low": _plain(self.low),
            "high": _plain(self.high),
            "confidence": _plain(self.confidence),
            "n": self.n,
            "note": self.note.json() if self.note else None,
        }


@dataclass(frozen=True)
class CheckResult:
    """One question with one limit, answered."""

    id: str  # e.g. g3.ttft_p50_drop.c8
    title: Text
    verdict: Verdict
    reason: Text
    severity: Severity = Severity.BLOCKING
    quantity: str = ""
    unit: str = "1"
    value: Decimal | str | None = None
    limit: Limit = Limit("none")
    interval: Interval | None = None
    margin: Decimal | None = None
    because: Because | None = None
    arm: str | None = None
    tier: int | None = None
    host: str | None = None
    source: str = ""  # the plan's field, e.g. g3.ttft_p50_drop_min
    remedy: str = ""  # of an inconclusive check: MORE_PAIRS, or nothing where only other evidence would answer it
    change: Text | None = None  # of every inconclusive or invalid check: what would answer it, e.g. so many more hours
    evidence: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """Return the form that stands in verdict.json."""
        return {
            "id": self.id,
            "title": self.title.json(),
            "verdict": str(self.verdict),
            "because": str(self.because) if self.because else None,
            "reason": self.reason.json(),
            "severity": str(self.severity),
            "quantity": self.quantity,
            "unit": self.unit,
            "value": _plain(self.value),
            "limit": self.limit.json(),
            "interval": self.interval.json() if self.interval else None,
            "margin": _plain(self.margin),
            "arm": self.arm,
            "tier": self.tier,
            "host": self.host,
            "source": self.source,
            "remedy": self.remedy,
            "change": self.change.json() if self.change else None,
            "evidence": list(self.evidence),
        }


@dataclass(frozen=True)
class ClaimResult:
    """One statement of validity about one arm, with the evidence that proves or breaks it."""

    claim: str  # e.g. page_cache_cold
    arm: str
    title: Text
    status: ClaimStatus
    reason: Text
    value: Decimal | str | None = None
    limit: Limit = Limit("none")
    unit: str = "1"
    attribution: Attribution | None = None
    run: str | None = None
    tier: int | None = None
    evidence: tuple[str, ...] = ()
    change: Text | None = None  # of an unknown one: what would answer it, where its evidence alone does not say

    def json(self) -> dict[str, Any]:
        """Return the form that stands in verdict.json."""
        return {
            "claim": self.claim,
            "arm": self.arm,
            "title": self.title.json(),
            "status": str(self.status),
            "reason": self.reason.json(),
            "value": _plain(self.value),
            "limit": self.limit.json(),
            "unit": self.unit,
            "attribution": str(self.attribution) if self.attribution else None,
            "run": self.run,
            "tier": self.tier,
            "evidence": list(self.evidence),
        }


@dataclass(frozen=True)
class StepSpec:
    """One step of a gate, as declared by the gate for one plan.

    `params` is handed to the playbook as the variable `step`; `expects` names, for each inventory group, the evidence
    files that every host of that group must bring (logical names below `evidence/<key>/<host>/`).
    """

    key: str  # unique within the gate, e.g. run-2-candidate
    kind: StepKind
    title: Text
    playbook: str = ""  # of a PLAYBOOK step, or the one that starts a JOB
    params: dict[str, Any] = field(default_factory=dict)
    expects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    changes_target: bool = False
    measured: bool = False  # a measured request can happen in it: from then on the attempt counts (DESIGN 4.11)
    repeatable: bool = True
    timeout_s: int = 600


@dataclass(frozen=True)
class GateSpec:
    """A gate: its steps and its judgement. One frozen instance stands in each `gates/gN_*.py` as GATE."""

    id: str
    order: int
    title: Text
    steps: Callable[[Plan], tuple[StepSpec, ...]]
    judge: Callable[..., GateJudgement]
    extension: Callable[[Plan], tuple[StepSpec, ...]] | None = None  # the steps that extend an inconclusive attempt, once
    way_on: Callable[..., dict[str, Any]] | None = None  # (plan, bundle, verdict, checks): what an extension did, or could do


@dataclass(frozen=True)
class GateJudgement:
    """What a gate's judge returns before the roll-up adds verdict and hashes."""

    checks: tuple[CheckResult, ...]
    claims: tuple[ClaimResult, ...] = ()
    not_tested: tuple[dict[str, Any], ...] = ()  # `agreed`: both parties left it out; else nobody asked for it, or nothing tells it
    figures: dict[str, Any] = field(default_factory=dict)
    risk: Text | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # e.g. the baseline that G2 freezes
    pairs: int | None = None  # run pairs that were judged, where it is not the plan's number


def _plain(value: Any) -> Any:
    """Decimals become plain decimal strings; None and text stay as they are."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value
