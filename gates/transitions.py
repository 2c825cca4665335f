"""How the run status of an attempt may change: one table, one pure function. The verdict is another thing and stands elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from gates.text import Text


class RunStatus(StrEnum):
    """Where an attempt is. Says nothing about what it is worth."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a person
    LOST_CONTACT = "lost_contact"  # the target is silent: not a failure
    FINISHED = "finished"
    CANCELED = "canceled"
    ERROR = "error"

    @property
    def ended(self) -> bool:
        """Return whether nothing moves any more without a person's decision."""
        return self in (RunStatus.FINISHED, RunStatus.CANCELED, RunStatus.ERROR)


class Event(StrEnum):
    """What happened to an attempt."""

    START = "start"  # the first advance
    WAIT = "wait"  # a step needs a person
    RESUME = "resume"  # the person did it
    LOSE_CONTACT = "lose_contact"  # polls of the target stay unanswered
    REGAIN_CONTACT = "regain_contact"
    FINISH = "finish"  # the last step is done
    CANCEL = "cancel"
    FAIL = "fail"  # a step could not be done: with a sentence, and open to a retry
    RETRY = "retry"  # a person lets the failed step be tried again
    EXTEND = "extend"  # a person adds the planned run pairs to an attempt that was judged inconclusive


@dataclass(frozen=True)
class IllegalTransition:
    """The answer to an event that the present status does not allow. Nothing may be written then."""

    status: RunStatus
    event: Event

    @property
    def text(self) -> Text:
        """Return the sentence for people."""
        return Text(
            f"An attempt that is {self.status} cannot take the event {self.event}; nothing was changed.",
            f"处于 {self.status} 状态的尝试不接受事件 {self.event}；未作任何更改。",
        )


TABLE: Mapping[tuple[RunStatus, Event], RunStatus] = MappingProxyType(
    {
        (RunStatus.QUEUED, Event.START): RunStatus.RUNNING,
        (RunStatus.QUEUED, Event.CANCEL): RunStatus.CANCELED,
        (RunStatus.QUEUED, Event.FAIL): RunStatus.ERROR,
        (RunStatus.RUNNING, Event.WAIT): RunStatus.WAITING,
        (RunStatus.RUNNING, Event.LOSE_CONTACT): RunStatus.LOST_CONTACT,
        (RunStatus.RUNNING, Event.FINISH): RunStatus.FINISHED,
        (RunStatus.RUNNING, Event.CANCEL): RunStatus.CANCELED,
        (RunStatus.RUNNING, Event.FAIL): RunStatus.ERROR,
        (RunStatus.WAITING, Event.RESUME): RunStatus.RUNNING,
        (RunStatus.WAITING, Event.CANCEL): RunStatus.CANCELED,
        (RunStatus.WAITING, Event.FAIL): RunStatus.ERROR,
        (RunStatus.LOST_CONTACT, Event.REGAIN_CONTACT): RunStatus.RUNNING,
        (RunStatus.LOST_CONTACT, Event.CANCEL): RunStatus.CANCELED,
        (RunStatus.LOST_CONTACT, Event.FAIL): RunStatus.ERROR,
        (RunStatus.ERROR, Event.RETRY): RunStatus.RUNNING,
        (RunStatus.ERROR, Event.CANCEL): RunStatus.CANCELED,
        (RunStatus.FINISHED, Event.EXTEND): RunStatus.RUNNING,
    }
)


def apply(status: RunStatus, event: Event) -> RunStatus | IllegalTransition:
    """Return the status after an event, or why there is none. Pure; the caller writes status, transition and audit together."""
    return TABLE.get((status, event)) or IllegalTransition(status, event)


def allowed(status: RunStatus) -> tuple[Event, ...]:
    """Return the events that a status accepts, in the order of the table."""
    return tuple(event for (at, event) in TABLE if at is status)
