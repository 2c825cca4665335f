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
            "An attempt whose run status is “{status}” cannot be {done}; nothing was changed.",
            "运行状态为“{status}”的尝试不能{done}；未作任何更改。",
        ).fill(status=STATUS_WORDS[self.status], done=_DONE[self.event])


STATUS_WORDS: Mapping[RunStatus, Text] = MappingProxyType(
    {
        RunStatus.QUEUED: Text("queued", "排队"),
        RunStatus.RUNNING: Text("running", "运行中"),
        RunStatus.WAITING: Text("waiting for a person", "等待人工"),
        RunStatus.LOST_CONTACT: Text("lost contact", "失联"),
        RunStatus.FINISHED: Text("finished", "已结束"),
        RunStatus.CANCELED: Text("canceled", "已取消"),
        RunStatus.ERROR: Text("error", "出错"),
    }
)  # for sentences that name a run status: the words of the pages

_DONE: Mapping[Event, Text] = MappingProxyType(
    {
        Event.START: Text("started", "启动"),
        Event.WAIT: Text("made to wait for a person", "转为等待人工"),
        Event.RESUME: Text("resumed", "继续"),
        Event.LOSE_CONTACT: Text("marked as out of contact", "标记为失联"),
        Event.REGAIN_CONTACT: Text("marked as back in contact", "标记为恢复联系"),
        Event.FINISH: Text("finished", "结束"),
        Event.CANCEL: Text("canceled", "取消"),
        Event.FAIL: Text("marked as failed", "标记为出错"),
        Event.RETRY: Text("retried", "重试"),
        Event.EXTEND: Text("extended", "补充"),
    }
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
