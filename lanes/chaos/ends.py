"""How an attempt came to its end: whether a cancel that was accepted was obeyed, how soon, and whether a fault explains each call for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from app.attempts.models import Attempt
from app.engine.policy import TRIES_MAX
from gates.transitions import RunStatus
from lanes.chaos.boundaries import BOUNDARIES
from lanes.chaos.findings import LOST, WRONG, Finding
from lanes.chaos.soak import Asked, Soak

CANCEL_S = 30.0  # DESIGN: a cancel ends everything within 30 s where reachable; the same on every machine
UNDER_FAULTS_S = 60.0  # of one that another fault struck: a playbook host that is killed is started again; one death of a worker is no excuse
JUDGED_MEANWHILE = (
    "judge/deciding"  # the one exception: asked for while a judgement was under way, whose verdict is reached and stays (engine/move.py)
)
FULL = ("evidence disk full", "runs disk full")
FULL_S = 3.0  # how long a disk stays full
LASTS_S = dict.fromkeys(FULL, 2 * FULL_S)  # faults that last, and by when they are surely over although this machine is busy
WORKERS = ("SIGKILL worker", *BOUNDARIES)
HOST, STARTS = "SIGKILL playbook host", ("SSH cut in start", "SSH killed in start")


@dataclass(frozen=True)
class Struck:
    """A fault that struck: when (monotonic), which, and the attempts that it was for; none: whatever ran then."""

    at: float
    fault: str
    whose: tuple[str, ...] = ()

    def hits(self, soak: Soak) -> bool:
        """Tell whether an attempt was struck, if it lived."""
        return not self.whose or soak.id in self.whose

    def felt(self, soak: Soak, until: float) -> bool:
        """Tell whether an attempt could feel it by then: what lasts for some seconds is also felt by one that was born meanwhile."""
        return soak.born - LASTS_S.get(self.fault, 0.0) <= self.at <= until and self.hits(soak)


def status(attempt: Attempt, soak: Soak, struck: Sequence[Struck]) -> list[Finding]:
    """Return what is wrong with the end of an attempt. `struck`: the faults of its lifetime."""
    odd = [asked for asked in soak.problems if not explained(asked, soak, struck)]
    found = [Finding(LOST, f"a person was asked for what no fault explains: {asked.code}: {asked.text}") for asked in odd]
    canceled, ended = "cancel" in soak.facts, f"{attempt.status}: {(attempt.problem or {}).get('en')}"
    if canceled and attempt.status == RunStatus.CANCELED:
        return found + _late(soak, struck)
    if canceled and not (attempt.status == RunStatus.FINISHED and soak.cancel_at == JUDGED_MEANWHILE):
        return [*found, Finding(WRONG, f"its cancel was accepted at {soak.cancel_at} and not obeyed; it ended as {ended}")]
    if attempt.status == RunStatus.CANCELED:
        return [*found, Finding(LOST, "it was canceled, and nobody had asked for that")]
    if attempt.status != RunStatus.FINISHED:
        return [*found, Finding(LOST, f"it ended as {ended}")]
    return found


def explained(asked: Asked, soak: Soak, struck: Sequence[Struck]) -> bool:
    """Tell whether a fault that struck this attempt before a person was asked ends in this code and in no other."""
    code, mine = asked.code, [one.fault for one in struck if one.felt(soak, asked.at)]
    full = any(fault in FULL for fault in mine)
    if code == "unreachable":
        return any(fault in STARTS for fault in mine)
    if code == "run_lost":  # it is begun anew until its hosts were killed three times, or could say nothing on a full disk
        return mine.count(HOST) >= TRIES_MAX or FULL[1] in mine
    if code in ("task_failed", "events_incomplete"):  # what a task fetched, or the record of a run, found no room
        return FULL[1] in mine
    if code == "playbook_failed":  # as the playbook host itself found no room
        return FULL[1] in mine and "No space left" in asked.text
    return code in ("disk_full", "report_failed") and full


def _late(soak: Soak, struck: Sequence[Struck]) -> list[Finding]:
    took, by = cancel_s(soak), _meanwhile(soak, struck)
    alone = len(by) == 1 and by[0] in WORKERS  # its lease is waited for, and that fits in
    if took is None or took <= (UNDER_FAULTS_S if by and not alone else CANCEL_S):
        return []
    named = ", ".join(dict.fromkeys(by)) or "nothing"
    return [Finding(LOST, f"the cancel at {soak.cancel_at} took {took:.0f} s; struck meanwhile: {named}")]


def cancel_s(soak: Soak) -> float | None:
    """Return the seconds from a cancel to its end; None where a worker that was killed could not note when it came."""
    end = soak.gone_at or soak.ended_s
    return end - soak.canceled_at if soak.canceled_at and end else None


def _meanwhile(soak: Soak, struck: Sequence[Struck]) -> list[str]:
    end = soak.gone_at or soak.ended_s or 0.0
    over = [one.fault for one in struck if soak.canceled_at <= one.at <= end and one.hits(soak)]
    return [fault for fault in over if fault != "cancel"]


class Cancels:
    """How long the cancels took, of those that no other fault struck and of the others."""

    def __init__(self) -> None:
        self.alone: list[float] = []
        self.struck: list[float] = []

    def add(self, soak: Soak, struck: Sequence[Struck]) -> None:
        """Count an attempt that was canceled in fact."""
        took = cancel_s(soak)
        if took is not None and "cancel" in soak.facts and soak.cancel_at != JUDGED_MEANWHILE:
            (self.struck if _meanwhile(soak, struck) else self.alone).append(took)

    def lines(self) -> list[str]:
        """Return what is printed below the table."""
        told = [f"{name} {_spread(times)}" for name, times in (("struck by nothing else", self.alone), ("struck meanwhile", self.struck)) if times]
        return [f"cancels took: {'; '.join(told)}"] if told else []


def _spread(times: Sequence[float]) -> str:
    ranked = sorted(times)
    p90 = ranked[min(len(ranked) - 1, int(0.9 * len(ranked)))]
    return f"{len(ranked)}: median {median(ranked):.1f} s, p90 {p90:.1f} s, longest {ranked[-1]:.1f} s"
