"""What a step's handler decided: the engine writes all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from gates.text import Text
from gates.transitions import Event


@dataclass(frozen=True)
class Trouble:
    """Why something could not be done: a stable code and a sentence for people, in both languages."""

    code: str
    text: Text

    def json(self, step: str = "") -> dict[str, Any]:
        """Return the form that stands on an attempt or a step."""
        return {"code": self.code, "en": self.text.en, "zh-CN": self.text.zh, **({"step": step} if step else {})}


@dataclass
class Outcome:
    """The decision. `due_s`: seconds until the next move, 0 at once, None when it is a person's turn or all is over."""

    due_s: float | None = 0.0
    event: Event | None = None
    reason: Text | None = None  # of the transition: a sentence of ours is there in both languages
    trouble: Trouble | None = None
    step: dict[str, Any] = field(default_factory=dict)  # columns of the current step
    attempt: dict[str, Any] = field(default_factory=dict)  # columns of the attempt
    writes: list[Callable[[Session], None]] = field(default_factory=list)
    next_step: bool = False


def done(**step: Any) -> Outcome:
    """Return the decision that the current step is done."""
    return Outcome(next_step=True, step={"status": "done", "problem": None, **step})


def failed(trouble: Trouble, **step: Any) -> Outcome:
    """Return the decision that the attempt ends in `error`, open to a retry of this step."""
    return Outcome(due_s=None, event=Event.FAIL, reason=trouble.text, trouble=trouble, step={"status": "failed", **step})
