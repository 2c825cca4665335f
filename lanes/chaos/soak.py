"""One attempt of the fleet: what the lane knows of it, and what it did to it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Asked:
    """An error for which a person was asked: its code, when (monotonic), and what was said."""

    code: str
    at: float
    text: str = ""


@dataclass
class Soak:
    """One attempt of the fleet, and what was done to it that is a fact for its verdict."""

    id: str
    root: Path  # of its target
    report: bool
    real: bool  # through the real ansible-playbook
    manual: bool = False  # with a step that waits for a person
    gate: str = ""  # of an attempt whose engagement goes through all gates (walk.py)
    jobs: tuple[str, ...] = ("soak",)  # keys of its steps that are jobs
    facts: set[str] = field(default_factory=set)
    problems: list[Asked] = field(default_factory=list)  # errors that a person retried
    cancel_at: str = ""  # kind and status of the step at which somebody is to cancel it
    canceled_at: float = 0.0  # when that was accepted (monotonic); 0 when nobody could note it
    gone_at: float = 0.0  # and when its end was written
    seen: tuple[str, str] = ("", "")  # step and its status
    place: str = ""  # the same as a boundary: kind of the step / its status
    cuts: int = 0  # connections to its target that were cut in fact
    born: float = field(default_factory=time.monotonic)
    ended_s: float | None = None

    @property
    def job(self) -> str:
        """Return the name of the soak on the target."""
        return self.job_of("soak")

    def job_of(self, step: str) -> str:
        """Return the name of a step's job on the target."""
        return f"{self.id}-{step}"

    def meets(self, kind: str) -> bool:
        """Tell whether it comes to a step of this kind."""
        return {"manual": self.manual, "report": self.report}.get(kind, True)
