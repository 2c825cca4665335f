"""What the pipeline's rules are told, and what they answer with. Frozen data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gates.model import Verdict
from gates.text import Text
from gates.transitions import RunStatus

GATES = ("G1", "G2", "G3", "G4")
PARTIES = ("vendor", "customer")
ACTIVE = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING, RunStatus.LOST_CONTACT)


class State(StrEnum):
    """Where a whole engagement stands."""

    DRAFT = "draft"  # the plan was never sealed
    ACTIVE = "active"
    STOPPED = "stopped"  # stop-loss
    NOT_CONCLUDED = "not_concluded"  # attempts used up without a pass
    CONCLUDED = "concluded"  # all four gates passed, and signed where the plan requires it
    CLOSED = "closed"  # by both parties


class GateState(StrEnum):
    """Where one gate stands."""

    LOCKED = "locked"  # something else comes first
    READY = "ready"  # an attempt may start
    RUNNING = "running"
    ERROR = "error"  # the last attempt could not be carried out
    CONSENT = "consent"  # conditional: both parties decide
    SIGN_OFF = "sign_off"  # passed, and the next gate waits for the signatures
    PASSED = "passed"
    RECTIFY = "rectify"  # failed: mended and tried again
    EXTEND = "extend"  # inconclusive, and more run pairs are planned for this
    AGAIN = "again"  # inconclusive, invalid, canceled, or a conditional that a party rejected
    STOPPED = "stopped"
    NOT_CONCLUDED = "not_concluded"


@dataclass(frozen=True)
class Refusal:
    """Why something may not be done now."""

    code: str
    text: Text


@dataclass(frozen=True)
class Action:
    """What comes next: seal, start, follow, form, retry, extend, consent, sign_off, lift, close or none."""

    kind: str
    label: Text
    reason: Text
    gate: str | None = None
    attempt_id: str | None = None


@dataclass(frozen=True)
class Decisions:
    """What the parties said about one object. A party agrees when one of its people approved and none rejected."""

    approved: frozenset[str] = frozenset()
    rejected: frozenset[str] = frozenset()

    @property
    def agreed(self) -> bool:
        """Tell whether both parties agree."""
        return not self.missing

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the parties whose agreement is missing."""
        return tuple(p for p in PARTIES if p not in self.approved or p in self.rejected)


@dataclass(frozen=True)
class AttemptFacts:
    """What the rules need to know of one attempt."""

    id: str
    gate: str
    number: int
    rehearsal: bool = False
    status: RunStatus = RunStatus.FINISHED
    counted: bool = True  # a measured request was sent, or the attempt ended with a verdict
    verdict: Verdict | None = None
    failed: bool = False  # a judgement of it was a fail, also when a later one was not
    outdated: bool = False  # judged on a baseline of G2 that no longer stands: it says nothing until it is judged again
    may_extend_by: int = 0  # run pairs by which its verdict says that it may be extended (DESIGN 4.6)
    extended: bool = False  # it was, or is being, extended: once is all
    replaced: bool = False  # both parties sealed a newer plan since: what it said stays said, and nothing is added to it
    on_fail: str = "stop"  # as the plan says that this attempt ran under: a later revision does not undo a stop
    rig_cause: Decisions = Decisions()
    consent: Decisions = Decisions()
    sign_off: Decisions = Decisions()
    lift: Decisions = Decisions()

    @property
    def active(self) -> bool:
        """Tell whether something still moves, or waits for a person, in this attempt."""
        return self.status in ACTIVE

    @property
    def passed(self) -> bool:
        """Tell whether this attempt lets the engagement go on: a pass, or a conditional that both parties accept."""
        return not self.outdated and (self.verdict is Verdict.PASS or (self.verdict is Verdict.CONDITIONAL and self.consent.agreed))

    @property
    def wants_judging(self) -> bool:
        """Tell whether it would let the engagement go on, if only its judgement were not out of date."""
        return self.outdated and self.verdict in (Verdict.PASS, Verdict.CONDITIONAL)

    @property
    def extendable(self) -> bool:
        """Tell whether it is extended, and not started afresh. An approved rig cause says that its runs prove nothing, and a newer plan that
        other things were agreed: then it is not.
        """  # noqa: D205
        open_to_it = self.verdict is Verdict.INCONCLUSIVE and self.may_extend_by > 0 and not self.extended
        return open_to_it and not self.rig_cause.agreed and not self.replaced

    @property
    def extending(self) -> bool:
        """Tell whether its extension has begun, and was neither judged nor given up."""
        return self.extended and self.verdict is None

    @property
    def stops(self) -> bool:
        """Tell whether this attempt stops the engagement, until both parties lift it: judging it again lifts nothing (DESIGN 4.10)."""
        return not self.rehearsal and (self.failed or self.verdict is Verdict.FAIL) and self.on_fail == "stop" and not self.lift.agreed

    @property
    def uses_up(self) -> bool:
        """Tell whether it takes one of the attempts that the plan allows (DESIGN 4.11).

        Only an attempt that says nothing about the product can be taken out by an approved rig cause.
        """
        spoke = self.verdict in (Verdict.PASS, Verdict.CONDITIONAL, Verdict.FAIL)
        return self.counted and (spoke or not self.rig_cause.agreed)

    @property
    def excused(self) -> bool:
        """Tell whether it would count, had not both parties approved a rig cause: every face says so, and never that it counts."""
        return self.counted and not self.uses_up


@dataclass(frozen=True)
class Policy:
    """The attempts and sign-offs, by gate, of the newest sealed plan (of the first plan while none was ever sealed)."""

    attempts: Mapping[str, int]
    sign_off: Mapping[str, str]


@dataclass(frozen=True)
class Facts:
    """All that the rules need to know of an engagement. `attempts` stand in the order in which they were started."""

    policy: Policy
    sealed: bool = False  # the newest revision of the plan
    ever_sealed: bool = False
    closed: bool = False
    attempts: tuple[AttemptFacts, ...] = ()

    def at(self, gate: str) -> tuple[AttemptFacts, ...]:
        """Return a gate's attempts without rehearsals."""
        return tuple(a for a in self.attempts if a.gate == gate and not a.rehearsal)

    def used(self, gate: str) -> int:
        """Return how many of a gate's attempts are used up."""
        return sum(a.uses_up for a in self.at(gate))

    def left(self, gate: str) -> int:
        """Return how many attempts a gate still has."""
        return max(0, self.policy.attempts[gate] - self.used(gate))

    def active(self) -> AttemptFacts | None:
        """Return the attempt that is going on."""
        return next((a for a in self.attempts if a.active), None)

    def stopped_by(self) -> AttemptFacts | None:
        """Return the fail that stops the engagement: of an attempt whose `on_fail` is stop, and not lifted by both parties."""
        return next((a for a in self.attempts if a.stops), None)
